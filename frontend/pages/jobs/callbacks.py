"""What the job list shows of the service's answers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial

from dash import Dash, Input, Output, State, dcc, html

from frontend.api import Api, Failure
from frontend.attributes import HIDDEN
from frontend.callbacks import NOTHING, NOTICES, Changes, answer, in_browser
from frontend.components.cards import empty_state, error_state
from frontend.components.grid import placeholder_id
from frontend.components.next_step import leads, without_cluster
from frontend.components.states import JOB_STATES, STATES
from frontend.formatting import count, plural
from frontend.loading import loaded
from frontend.pages.jobs.blocks import RowsRequest, block, query_of
from frontend.pages.jobs.filters import Filters, in_address, used_words
from frontend.pages.jobs.rows import Row, row_of
from frontend.pages.jobs.summary import oldest_wait, verdict
from frontend.pages.overview import add_demo_jobs
from frontend.routing import QueryValue, path_to
from frontend.shell import NO_CLUSTER
from maat.api.job_answers import JobPage
from maat.client import calls

_MOST_OWNERS = 200
FIELDS = tuple(
    f"jobs-{name}"
    for name in ("search", "state", "model", "type", "tenant", "owner", "days", "label")
)
"""The fields that filter, in the order in which the browser takes them."""


def register(app: Dash, api: Api) -> None:
    _register_browser(app)
    answer(
        app,
        partial(offer, api),
        output={
            "models": Output("jobs-model", "data"),
            "types": Output("jobs-type", "data"),
            "tenants": Output("jobs-tenant", "data"),
            "tenants_there": Output("jobs-tenant-box", "style"),
            "owners": Output("jobs-owner", "data"),
        },
        inputs={"_cluster_id": Input("cluster-select", "value")},
        state={
            "models_now": State("jobs-model", "data"),
            "types_now": State("jobs-type", "data"),
            "tenants_now": State("jobs-tenant", "value"),
        },
    )
    answer(
        app,
        partial(rows, api),
        output={
            "rows": Output("jobs-grid", "getRowsResponse"),
            "verdict": Output("jobs-verdict", "children"),
            "counts": Output("jobs-counts", "children"),
            "total": Output("jobs-total", "children"),
            "cursors": Output("jobs-cursors", "data"),
            "told": Output(placeholder_id("jobs-grid"), "children"),
        },
        inputs={"request": Input("jobs-grid", "getRowsRequest")},
        state={
            "filters": State("jobs-filters", "data"),
            "cursors": State("jobs-cursors", "data"),
            "columns": State("jobs-columns-shown", "data"),
            "cluster_id": State("cluster-select", "value"),
        },
        prevent_initial_call=True,
    )
    answer(
        app,
        partial(add_demo_jobs, api),
        output={"notices": NOTICES},
        inputs={"clicks": Input("jobs-demo", "n_clicks")},
        state={"cluster_id": State("cluster-select", "value")},
        prevent_initial_call=True,
        running=[(Output("jobs-demo", "disabled"), True, False)],
    )


def _register_browser(app: Dash) -> None:
    """Register the callbacks that run in the browser."""
    in_browser(
        app,
        "jobFilters",
        Output("jobs-filters", "data"),
        *(Input(field, "value") for field in FIELDS),
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
        Output(placeholder_id("jobs-grid"), "id"),
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
        *(Output(field, "value") for field in FIELDS),
        Input("jobs-clear", "n_clicks"),
        prevent_initial_call=True,
    )


async def offer(
    api: Api,
    *,
    _cluster_id: str | None,
    models_now: list[str],
    types_now: list[str],
    tenants_now: list[str],
) -> Changes:
    """Offer models and GPU types of the catalog, tenants and owners that the visitor may list.

    Each field also offers what it holds. Who sees one tenant has no field for tenants.
    """
    async with api.visitor() as maat:
        models, me, tenants, users = await asyncio.gather(
            loaded(maat.send(calls.models())),
            loaded(maat.me()),
            loaded(maat.send(calls.tenants())),
            loaded(maat.send(calls.users(limit=_MOST_OWNERS))),
        )
    described = models.answer["items"] if models.answer else []
    types = {entry["gpu_type"] for model in described for entry in model["gpu_types"]}
    owners = [one["name"] for one in users.answer["items"]] if users.answer else []
    named = [one["name"] for one in tenants.answer["items"]] if tenants.answer else []
    all_tenants = sorted({*named, *tenants_now})
    return {
        "models": sorted({model["name"] for model in described} | set(models_now)),
        "types": sorted(types | set(types_now)),
        "tenants": all_tenants,
        "tenants_there": {} if len(all_tenants) > 1 or tenants_now else HIDDEN,
        "owners": list(dict.fromkeys([*([me.answer["user"]] if me.answer else []), *owners])),
    }


async def rows(
    api: Api,
    *,
    request: RowsRequest | None,
    filters: Filters,
    cursors: dict[str, str] | None,
    columns: list[str],
    cluster_id: str | None,
) -> Changes:
    """Answer the grid with a block of rows, and count by state what the filters match."""
    if not request:
        return NOTHING
    if cluster_id == NO_CLUSTER:
        return _without_cluster()
    query = query_of(filters, cluster_id, request)
    start, end = request["startRow"], request["endRow"]
    try:
        async with api.visitor() as maat:
            page, learned = await block(
                maat, query, start=start, rows=end - start, cursors=cursors or {}
            )
            oldest = await oldest_wait(maat, query, page)
    except Failure as error:
        return {**_NONE, "told": error_state(error)}
    told = {"verdict": verdict(page["state_counts"], oldest)}
    look: dict[str, QueryValue] = {"sort": query["sort"], "column": columns}
    return {**shown(page, learned, filters, cluster_id, look), **told}


def _response(data: list[Row], total: int | None) -> dict[str, object]:
    """Return the grid's form of an answer."""
    return {"rowData": data, "rowCount": total}


_NONE: Changes = {
    "rows": _response([], 0),
    "verdict": "",
    "counts": [],
    "total": "",
    "cursors": {},
}


def shown(
    page: JobPage,
    cursors: dict[str, str],
    filters: Filters,
    cluster_id: str | None,
    look: Mapping[str, QueryValue],
) -> Changes:
    """`look`: what the address says beside the filters: order and columns."""
    total = page["total"]
    view = {**in_address(filters), **look}
    return {
        "rows": _response([row_of(job) for job in page["items"]], total),
        "counts": _counts(page["state_counts"], cluster_id, view),
        "total": "" if total is None else _total_words(total, filters),
        "cursors": cursors,
        "told": _nothing(filters, cluster_id) if total == 0 else None,
    }


def _without_cluster() -> Changes:
    return {
        **_NONE,
        "told": without_cluster("Its jobs show here."),
    }


def _total_words(total: int, filters: Filters) -> str:
    """Only filters can match."""
    return f"{count(total)} match" if any(filters.values()) else plural(total, "job")


def _nothing(filters: Filters, cluster_id: str | None) -> html.Div:
    """Say why the list is empty: no job was submitted, or none matches the filters.

    The link has no id, because Dash would look for it after it is gone.
    """
    used = used_words(filters)
    if not used:
        return empty_state(
            "No job yet",
            "Submit one, or add demo jobs: the next round considers them.",
            action=leads("Submit job", path_to("/submit", cluster=cluster_id)),
        )
    return empty_state(
        "No job matches",
        f"Filtered by {', '.join(used)}. Clear the filters to see all jobs.",
        action=dcc.Link(
            "All jobs", href=path_to("/jobs", cluster=cluster_id), className="button-link"
        ),
    )


def _counts(
    counts: Mapping[str, int], cluster_id: str | None, view: Mapping[str, QueryValue]
) -> list[dcc.Link]:
    """Count by state what the filters match.

    Each count is a link to the list of these jobs. `view`: the parameters of the page.
    """
    return [
        dcc.Link(
            html.Span(
                [
                    html.Span(STATES[name].glyph, className="state-glyph"),
                    f"{count(counts[name])} {name}",
                ],
                className=f"state state-{STATES[name].hue}",
            ),
            href=path_to("/jobs", cluster=cluster_id, **{**view, "state": name}),
        )
        for name in JOB_STATES
        if counts.get(name)
    ]
