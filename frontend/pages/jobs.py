"""The job list: every job that matches the filters, counts by state from the same predicate, rows fetched as they are scrolled to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html, no_update

from frontend.addresses import add_page, among, anything
from frontend.api import Api, Failure
from frontend.components.cards import empty_state, error_state, link_button, page_title
from frontend.components.grid import RIGHT, grid, told
from frontend.components.states import JOB_STATES, STATES, state_text
from frontend.formatting import ABSENT, clock, count, duration, gpu_hours, gpus, plural
from frontend.pages.overview import demo_jobs
from frontend.routing import aria, in_browser, one, path_to, several
from frontend.shell import NO_CLUSTER
from frontend.theme import gpu_colour
from maat.client import AsyncClient, calls
from maat.client.calls import JobFilters

BLOCK_ROWS = 100
MAX_LIMIT = 500
LOADING_ROWS = 12  # that stand there until the first have come
NEWEST_FIRST = "-submitted_at"
# Columns have the service's names of what it sorts by: `sort` of the address and of the list.
SORTS = frozenset({"submitted_at", "name", "model", "state", "progress", "gpu_hours", "restarts"})

IN_CLUSTER_TIME = {"headerTooltip": "In the cluster's own time"}
# On a narrow page the grid leaves out `remaining` and `restarts` (assets/maat.js, fitColumns). The name takes what the others leave; it is cut in its middle, where it must be, since names that begin alike end otherwise.
COLUMNS = [
    {
        "field": "name",
        "colId": "name",
        "headerName": "Job",
        "flex": 4,
        "minWidth": 140,
        "sortable": True,
        "cellRenderer": "MaatLink",
        "cellRendererParams": {"cutInMiddle": True},
        "tooltipField": "name",
    },
    {
        "field": "state",
        "colId": "state",
        "headerName": "State",
        "width": 108,
        "sortable": True,
        "cellRenderer": "MaatState",
        "tooltipField": "reason",
    },
    {
        "field": "model",
        "colId": "model",
        "headerName": "Model",
        "flex": 1,
        "minWidth": 100,
        "sortable": True,
        "tooltipField": "model",
    },
    {
        "field": "want",
        "headerName": "Wants",
        "headerTooltip": "GPUs that it asks for",
        "width": 80,
        "tooltipField": "want",
    },
    {
        "field": "have",
        "headerName": "Has",
        "headerTooltip": "GPUs that it holds",
        "width": 104,
        "cellRenderer": "MaatGpus",
    },
    {
        "field": "progress_share",
        "colId": "progress",
        "headerName": "Progress",
        "width": 96,
        "tooltipField": "remaining_words",
        "sortable": True,
        "cellRenderer": "MaatProgress",
    },
    {"field": "remaining", "headerName": "Remaining", "width": 94, **IN_CLUSTER_TIME, **RIGHT},
    {
        "field": "wait",
        "headerName": "Waited",
        "width": 86,
        "tooltipField": "wait_exact",
        **IN_CLUSTER_TIME,
        **RIGHT,
    },
    {
        "field": "gpu_hours",
        "colId": "gpu_hours",
        "headerName": "GPU-hours",
        "width": 80,
        "sortable": True,
        **RIGHT,
    },
    {
        "field": "submitted",
        "colId": "submitted_at",
        "headerName": "Submitted",
        "width": 106,
        "tooltipField": "submitted_exact",
        "sortable": True,
        **IN_CLUSTER_TIME,
        **RIGHT,
    },
    {
        "field": "tenant",
        "headerName": "Tenant",
        "flex": 1,
        "minWidth": 70,
        "tooltipField": "tenant",
    },
    {
        "field": "restarts",
        "colId": "restarts",
        "headerName": "Restarts",
        "width": 74,
        "sortable": True,
        **RIGHT,
    },
]


def layout(
    q: Any = None,
    state: Any = None,
    model: Any = None,
    gpu_type: Any = None,
    sort: Any = None,
    **_query: Any,
) -> html.Div:
    text = one(q) or ""
    states = [{"value": name, "label": state_text(name)} for name in JOB_STATES]
    return html.Div(
        [
            page_title(
                "Jobs",
                dmc.Button("Add demo jobs", id="jobs-demo", variant="default", size="xs"),
                link_button("Submit job", "/submit", variant="primary"),
                note=html.Span(id="jobs-total", className="caption"),
            ),
            dmc.Paper(
                [
                    dmc.Group(
                        [
                            dmc.TextInput(
                                id="jobs-search",
                                value=text,
                                placeholder="Search name or id  ( / )",
                                debounce=300,
                                size="xs",
                                w=240,
                                **aria("Search jobs"),
                            ),
                            dmc.MultiSelect(
                                id="jobs-state",
                                data=states,
                                value=[name for name in several(state) if name in JOB_STATES],
                                placeholder="State",
                                size="xs",
                                miw=150,
                                clearable=True,
                                **aria("State"),
                            ),
                            dmc.MultiSelect(
                                id="jobs-model",
                                data=several(model),
                                value=several(model),
                                placeholder="Model",
                                size="xs",
                                miw=150,
                                clearable=True,
                                searchable=True,
                                **aria("Model"),
                            ),
                            dmc.MultiSelect(
                                id="jobs-type",
                                data=several(gpu_type),
                                value=several(gpu_type),
                                placeholder="GPU type",
                                size="xs",
                                miw=130,
                                clearable=True,
                                **aria("GPU type"),
                            ),
                            dmc.Button(
                                "Clear filters", id="jobs-clear", variant="subtle", size="xs"
                            ),
                        ],
                        gap=8,
                        mb=8,
                    ),
                    html.Div(
                        id="jobs-counts",
                        className="legend",
                        style={"minHeight": "20px", "marginBottom": "8px"},
                    ),
                    grid(
                        "jobs-grid",
                        columns_sorted(one(sort)),
                        height="calc(100vh - 236px)",
                        rowModelType="infinite",
                        getRowId="params.data.id",
                        options={
                            "cacheBlockSize": BLOCK_ROWS,
                            "maxBlocksInCache": 20,
                            "infiniteInitialRowCount": LOADING_ROWS,
                        },
                    ),
                ],
                className="card",
                withBorder=True,
            ),
            dcc.Store(
                id="jobs-filters",
                data={
                    "q": text or None,
                    "state": [name for name in several(state) if name in JOB_STATES],
                    "model": several(model),
                    "gpu_type": several(gpu_type),
                },
            ),
            dcc.Store(id="jobs-cursors", data={}),
            dcc.Store(id="jobs-grid-id", data="jobs-grid"),
        ]
    )


def register(app: Dash, api: Api) -> None:
    takes = {
        "q": anything,
        "state": among("job state", JOB_STATES),
        "model": anything,
        "gpu_type": anything,
        "sort": among("order", (sign + column for column in sorted(SORTS) for sign in ("", "-"))),
    }
    add_page(
        __name__,
        path="/jobs",
        name="Jobs",
        title="Jobs",
        order=2,
        layout=layout,
        takes=takes,
        all_of=("/jobs", "All jobs"),
    )

    in_browser(
        app,
        "jobFilters",
        Output("jobs-filters", "data"),
        Input("jobs-search", "value"),
        Input("jobs-state", "value"),
        Input("jobs-model", "value"),
        Input("jobs-type", "value"),
        prevent_initial_call=True,
    )
    in_browser(
        app,
        "sortInUrl",
        Output("jobs-grid", "id"),
        Input("jobs-grid", "getRowsRequest"),
        prevent_initial_call=True,
    )
    in_browser(
        app,
        "fitColumns",
        Output(told("jobs-grid"), "id"),
        Input("jobs-grid", "getRowsRequest"),
        State("jobs-grid-id", "data"),
    )
    in_browser(
        app,
        "restartGrid",
        Output("jobs-grid-id", "data", allow_duplicate=True),
        Input("jobs-filters", "data"),
        Input("cluster-select", "value"),
        State("jobs-grid-id", "data"),
        prevent_initial_call=True,
    )
    in_browser(
        app,
        "refreshGrid",
        Output("jobs-grid-id", "data"),
        Input("live", "data"),
        State("jobs-grid-id", "data"),
        prevent_initial_call=True,
    )
    in_browser(
        app,
        "clearFilters",
        Output("jobs-search", "value"),
        Output("jobs-state", "value"),
        Output("jobs-model", "value"),
        Output("jobs-type", "value"),
        Input("jobs-clear", "n_clicks"),
        prevent_initial_call=True,
    )

    @app.callback(
        Output("jobs-model", "data"),
        Output("jobs-type", "data"),
        Input("cluster-select", "value"),
        State("jobs-model", "data"),
        State("jobs-type", "data"),
    )
    async def offer(
        _cluster_id: str | None, models_now: list[str], types_now: list[str]
    ) -> tuple[Any, Any]:
        try:
            async with api.visitor() as maat:
                models = (await maat.send(calls.models()))["items"]
        except Failure:
            return no_update, no_update
        names = {model["name"] for model in models} | set(models_now)
        types = {entry["gpu_type"] for model in models for entry in model["gpu_types"]} | set(
            types_now
        )
        return sorted(names), sorted(types)

    @app.callback(
        Output("jobs-grid", "getRowsResponse"),
        Output("jobs-counts", "children"),
        Output("jobs-total", "children"),
        Output("jobs-cursors", "data"),
        Output(told("jobs-grid"), "children"),
        Input("jobs-grid", "getRowsRequest"),
        State("jobs-filters", "data"),
        State("jobs-cursors", "data"),
        State("cluster-select", "value"),
        prevent_initial_call=True,
    )
    async def rows(
        request: dict[str, Any] | None,
        filters: dict[str, Any],
        cursors: dict[str, str],
        cluster_id: str | None,
    ) -> tuple[Any, ...]:
        if not request:
            return (no_update,) * 5
        if cluster_id == NO_CLUSTER:
            return (
                {"rowData": [], "rowCount": 0},
                [],
                "",
                {},
                empty_state(
                    "No cluster yet", "Create one with POST /api/v1/clusters; its jobs show here."
                ),
            )
        query = _query(filters, cluster_id, request)
        try:
            async with api.visitor() as maat:
                page, cursors = await block(
                    maat,
                    query,
                    start=request["startRow"],
                    rows=request["endRow"] - request["startRow"],
                    cursors=cursors or {},
                )
        except Failure as error:
            return {"rowData": [], "rowCount": 0}, no_update, no_update, {}, error_state(error)
        total = page.get("total")
        response = {"rowData": [row_of(job) for job in page["items"]], "rowCount": total}
        return (
            response,
            _counts(
                page.get("state_counts") or {},
                {"cluster": cluster_id, **filters, "sort": query["sort"]},
            ),
            _total_words(total, filters) if total is not None else "",
            cursors,
            _nothing(filters, cluster_id) if total == 0 else None,
        )

    @app.callback(
        Output("notices", "sendNotifications", allow_duplicate=True),
        Input("jobs-demo", "n_clicks"),
        State("cluster-select", "value"),
        prevent_initial_call=True,
        running=[(Output("jobs-demo", "disabled"), True, False)],
    )
    async def add_demo_jobs(clicks: int | None, cluster_id: str | None) -> Any:
        return no_update if not clicks else await demo_jobs(api, cluster_id)


def _query(
    filters: Mapping[str, Any], cluster_id: str | None, request: Mapping[str, Any]
) -> JobFilters:
    query: JobFilters = {"count": "exact", "sort": NEWEST_FIRST}
    if cluster_id:
        query["cluster"] = cluster_id
    if filters.get("q"):
        query["q"] = filters["q"]
    for name in ("state", "model", "gpu_type"):
        if filters.get(name):
            query[name] = filters[name]
    for wish in request.get("sortModel") or []:
        if wish["colId"] in SORTS:
            query["sort"] = ("-" if wish["sort"] == "desc" else "") + wish["colId"]
    return query


async def block(
    maat: AsyncClient, query: JobFilters, *, start: int, rows: int, cursors: Mapping[str, str]
) -> tuple[Any, dict[str, str]]:
    """Rows `start` to `start + rows` of a keyset list, and the cursors learned: row offset -> cursor of the page that starts there.

    The grid asks by offset, the service pages by cursor: from the nearest cursor that is known the rows between are stepped over.
    """
    known = {} if start == 0 else {int(offset): cursor for offset, cursor in cursors.items()}
    at = max((offset for offset in known if offset <= start), default=0)
    while at < start:
        skipped = await maat.jobs(**_window(query, rows=start - at, cursor=known.get(at)))
        at += len(skipped["items"])
        if skipped["next_cursor"] is None:
            return {**skipped, "items": []}, {
                str(offset): cursor for offset, cursor in known.items()
            }
        known[at] = skipped["next_cursor"]
    page = await maat.jobs(**_window(query, rows=rows, cursor=known.get(start)))
    if page["next_cursor"] is not None:
        known[start + len(page["items"])] = page["next_cursor"]
    return page, {str(offset): cursor for offset, cursor in known.items()}


def _window(query: JobFilters, *, rows: int, cursor: str | None) -> JobFilters:
    return cast(JobFilters, {**query, "limit": min(rows, MAX_LIMIT), "cursor": cursor})


def row_of(job: Mapping[str, Any]) -> dict[str, Any]:
    """A job as a row: words for people, hidden fields for links and colours."""
    look = STATES.get(job["state"])
    held = job["allocation"]
    return {
        "id": job["id"],
        "href": f"/jobs/{job['id']}",
        "name": job["name"],
        "state": job["state"],
        "glyph": look.glyph if look else "?",
        "hue": look.hue if look else "gray",
        "reason": (job["reason"] or {}).get("sentence"),
        "model": job["model"],
        "tenant": job["tenant"],
        "want": wanted(job),
        "have": gpus(held["gpu_count"], held["gpu_type"]) if held else ABSENT,
        "colour": gpu_colour(held["gpu_type"]) if held else None,
        "progress_share": job["progress"],
        "remaining": duration(job["remaining_seconds"]),
        "remaining_words": f"{duration(job['remaining_seconds'])} left, as fast as it is now"
        if held
        else None,
        "wait": duration(job["wait_seconds"]),
        "wait_exact": f"{job['wait_seconds']:.0f} s of cluster time",
        "gpu_hours": gpu_hours(job["gpu_hours"]),
        "restarts": job["restarts"],
        "submitted": clock(job["submitted_at"]).rpartition(":")[0],
        "submitted_exact": f"{clock(job['submitted_at'])} of cluster time",
    }


def _total_words(total: int, filters: Mapping[str, Any]) -> str:
    """Only filters can match."""
    return f"{count(total)} match" if any(filters.values()) else plural(total, "job")


def wanted(job: Mapping[str, Any]) -> str:
    """`1 to 16`, `4`, `2 or more`."""
    if job["adaptivity"] == "rigid":
        return str(job["gpu_count"])
    if job["max_gpus"] is None:
        return f"{job['min_gpus']} or more"
    return (
        str(job["min_gpus"])
        if job["min_gpus"] == job["max_gpus"]
        else f"{job['min_gpus']} to {job['max_gpus']}"
    )


def _nothing(filters: Mapping[str, Any], cluster_id: str | None) -> html.Div:
    """Why the list is empty: nothing was submitted, or the filters leave nothing. Its link has no id: Dash would still look for it when it is gone."""
    used = [
        f"{name.replace('_', ' ')} {value if isinstance(value, str) else ' or '.join(value)}"
        for name, value in filters.items()
        if value
    ]
    if not used:
        return empty_state(
            "No job yet", "Submit one, or add demo jobs: the next round considers them."
        )
    return empty_state(
        "No job matches",
        f"Filtered by {', '.join(used)}. Clear the filters to see all jobs.",
        action=dcc.Link(
            "All jobs", href=path_to("/jobs", cluster=cluster_id), className="button-link"
        ),
    )


def columns_sorted(wish: str | None) -> list[dict[str, Any]]:
    """The columns, one of them sorted: by which `wish` says, as the service names it, else the newest first."""
    given = wish if wish is not None and wish.removeprefix("-") in SORTS else NEWEST_FIRST
    order = "desc" if given.startswith("-") else "asc"
    return [
        {**column, "sort": order} if column.get("colId") == given.removeprefix("-") else column
        for column in COLUMNS
    ]


def _counts(counts: Mapping[str, int], view: Mapping[str, Any]) -> list[Any]:
    """Counts by state of what the filters match, each a link that narrows `view`, the parameters of the page, to it."""
    return [
        dcc.Link(
            html.Span(
                [
                    html.Span(STATES[name].glyph, className="state-glyph"),
                    f"{count(counts[name])} {name}",
                ],
                className=f"state state-{STATES[name].hue}",
            ),
            href=path_to("/jobs", **{**view, "state": name}),
        )
        for name in JOB_STATES
        if counts.get(name)
    ]
