"""The overview: how much of the cluster works, on what, for whom, and what waits."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html, no_update

from frontend.addresses import add_page, among
from frontend.api import Api, Failure, said
from frontend.components.cards import (
    card,
    empty_state,
    error_state,
    graph,
    link_button,
    page_title,
    skeleton,
    tile,
)
from frontend.components.cluster_map import cluster_map, drawing_of, register_cluster_map
from frontend.components.notices import notice, refusal
from frontend.figures.base import empty_figure, error_figure
from frontend.figures.cluster_map import Known, message
from frontend.figures.usage import pending_figure, usage_figure
from frontend.formatting import ABSENT, clock, count, duration, parse_time, percent, plural
from frontend.routing import in_browser, one, path_to
from frontend.shell import NO_CLUSTER
from maat.client import calls

DEMO_JOBS = 20
# The first screen is filled, whatever its height: what is left of it below the tiles, shared by two charts and beside them the map.
ROOM = "(100vh - 352px)"
USAGE_HEIGHT, JOBS_HEIGHT, MAP_HEIGHT = (
    f"max(200px, calc({ROOM} * 0.55))",
    f"max(170px, calc({ROOM} * 0.45))",
    "max(422px, calc(100vh - 288px))",
)

RANGES = (("3600", "1 h"), ("21600", "6 h"), ("86400", "24 h"), ("all", "All"))
DEFAULT_RANGE = "21600"
RUNNING, WAITING = (
    ("running", "starting", "restarting"),
    ("pending", "submitted", "profiling", "preempted"),
)


def layout(**query: Any) -> html.Div:
    asked = one(query.get("range"))
    return html.Div(
        [
            page_title(
                "Overview",
                dmc.Button("Add demo jobs", id="overview-demo", variant="default", size="xs"),
                link_button("Submit job", "/submit", variant="primary"),
                note=html.Span(
                    id="overview-note",
                    className="caption",
                    title="The cluster's own clock, in which all times of its jobs are told",
                ),
            ),
            html.Div([skeleton(84) for _ in range(6)], id="overview-tiles", className="tiles"),
            html.Div(
                [
                    html.Div(
                        [
                            card(
                                "GPUs in use",
                                graph("overview-usage", height=USAGE_HEIGHT),
                                aside=dmc.SegmentedControl(
                                    id="overview-range",
                                    data=[
                                        {"value": value, "label": label} for value, label in RANGES
                                    ],
                                    value=asked if asked in dict(RANGES) else DEFAULT_RANGE,
                                    size="xs",
                                    transitionDuration=0,
                                ),
                            ),
                            card("Jobs", graph("overview-pending", height=JOBS_HEIGHT)),
                        ],
                        className="span-7 form-stack",
                    ),
                    card(
                        "Cluster map",
                        cluster_map("overview", height=MAP_HEIGHT, smallest_pixels=7),
                        aside=dcc.Link(
                            "As a table",
                            href="/cluster",
                            className="caption",
                            id={"to": "/cluster", "words": "As a table"},
                        ),
                        className="span-5",
                    ),
                ],
                className="columns",
            ),
        ]
    )


def register(app: Dash, api: Api) -> None:
    add_page(
        __name__,
        path="/",
        name="Overview",
        title="Overview",
        order=0,
        layout=layout,
        takes={"range": among("range", dict(RANGES))},
    )

    register_cluster_map(app, "overview")
    in_browser(
        app,
        "rangeInUrl",
        Output("overview-range", "id"),
        Input("overview-range", "value"),
        prevent_initial_call=True,
    )

    @app.callback(
        Output("overview-note", "children"),
        Output("overview-tiles", "children"),
        Output("overview-usage", "figure"),
        Output("overview-pending", "figure"),
        Output("overview-drawing", "data"),
        Input("live", "data"),
        Input("cluster-select", "value"),
        Input("scheme", "data"),
        Input("overview-range", "value"),
        State("overview-known", "data"),
    )
    async def show(
        _live: Any, cluster_id: str | None, scheme: str | None, span: str, known: Known | None
    ) -> tuple[Any, ...]:
        if not cluster_id or not scheme:
            return (no_update,) * 5
        if cluster_id == NO_CLUSTER:
            return "", *_without_cluster(scheme)
        try:
            async with api.visitor() as maat:
                state = await maat.send(calls.cluster_state(cluster_id))
                timeline, waiting, rounds, counted = await asyncio.gather(
                    maat.send(
                        calls.timeline(cluster_id, start=_start(state["now"], span), points=600)
                    ),
                    maat.jobs(
                        cluster=cluster_id,
                        state=["pending", "submitted", "profiling"],
                        sort="submitted_at",
                        limit=1,
                    ),
                    maat.send(calls.rounds(cluster_id, limit=3)),
                    maat.jobs(cluster=cluster_id, limit=1),
                )
        except Failure as error:
            return "", *_failed(error, scheme)
        series = timeline["series"]
        return (
            f"cluster time {clock(state['now'])}",
            _tiles(
                cluster_id,
                state,
                counted.get("state_counts") or {},
                waiting["items"],
                rounds["items"],
            ),
            usage_figure(series["gpus_used_by_type"], series["capacity_by_type"], scheme=scheme),
            pending_figure(series["pending_jobs"], series["running_jobs"], scheme=scheme),
            drawing_of(state["gpus"], known, scheme=scheme),
        )

    @app.callback(
        Output("notices", "sendNotifications", allow_duplicate=True),
        Input("overview-demo", "n_clicks"),
        State("cluster-select", "value"),
        prevent_initial_call=True,
        running=[(Output("overview-demo", "disabled"), True, False)],
    )
    async def add_demo_jobs(clicks: int | None, cluster_id: str | None) -> Any:
        return no_update if not clicks else await demo_jobs(api, cluster_id)


def _start(now: str, span: str) -> str | None:
    """The beginning of the span that ends now; None for all there is."""
    moment = parse_time(now)
    return (
        None
        if span == "all" or moment is None
        else (moment - timedelta(seconds=int(span))).isoformat()
    )


async def demo_jobs(api: Api, cluster_id: str | None) -> list[dict[str, Any]]:
    """Add demo jobs to a cluster; what to say about it."""
    if cluster_id in (None, NO_CLUSTER):
        return notice("No cluster", "Create a cluster first: POST /api/v1/clusters.")
    try:
        async with api.visitor() as maat:
            await maat.send(calls.add_demo_jobs(count=DEMO_JOBS, cluster_id=cluster_id))
    except Failure as error:
        return refusal(error)
    return notice(f"{DEMO_JOBS} demo jobs added", "The next round considers them.")


def _tiles(
    cluster_id: str,
    state: Mapping[str, Any],
    counts: Mapping[str, int],
    waiting: Sequence[Mapping[str, Any]],
    rounds: Sequence[Mapping[str, Any]],
) -> list[Any]:
    cells = state["gpus"]
    held = sum(bool(cell["held"]) for cell in cells)
    drained = sum(bool(cell["drained"]) for cell in cells)
    running = sum(counts.get(name, 0) for name in RUNNING)
    restarting = counts.get("restarting", 0)
    pending = sum(counts.get(name, 0) for name in WAITING)
    finished = counts.get("succeeded", 0)
    oldest = waiting[0] if waiting else None
    latest = next(
        (entry for entry in rounds if entry["number"] == state["round_number"]), None
    )  # a newer one may have come meanwhile

    def jobs_in(*states: str) -> str:
        return path_to("/jobs", cluster=cluster_id, state=states)

    return [
        tile(
            "GPUs in use",
            f"{count(held)} / {count(len(cells))}",
            percent(held / len(cells)) + (f", {drained} drained" if drained else "")
            if cells
            else "no node",
        ),
        tile(
            "Running",
            count(running),
            f"{restarting} of them restarting" if restarting else "jobs",
            href=jobs_in(*RUNNING),
        ),
        tile(
            "Pending",
            count(pending),
            "jobs wait for GPUs" if pending else "no job waits",
            href=jobs_in(*WAITING),
        ),
        tile(
            "Oldest wait",
            duration(oldest["wait_seconds"]) if oldest else ABSENT,
            oldest["name"]
            if oldest
            else "all who wait had GPUs before"
            if pending
            else "nothing waits to start",
            href=f"/jobs/{oldest['id']}" if oldest else None,
        ),
        tile(
            "Succeeded",
            count(finished),
            plural(counts.get("failed", 0), "failed", "failed"),
            href=jobs_in("succeeded"),
        ),
        tile(
            "Round",
            count(latest["number"]) if latest else ABSENT,
            f"{latest['policy']}, decided in {(latest['policy_seconds'] + latest['place_seconds']) * 1000:.0f} ms"
            if latest
            else "none yet",
            href=path_to("/rounds", cluster=cluster_id),
        ),
    ]


def _without_cluster(scheme: str) -> tuple[Any, ...]:
    title, remedy = (
        "No cluster yet",
        "Create one with POST /api/v1/clusters, or start Maat with `make up`.",
    )
    steps = html.Div(
        card(
            None,
            empty_state(
                title,
                [remedy, html.Br(), "Then submit a job, or add demo jobs."],
                action=html.A(
                    "Open the API reference", href="/docs", className="button-link primary"
                ),
            ),
        ),
        style={"gridColumn": "1 / -1"},
    )
    nothing = "Its GPUs and jobs show here."
    figure = empty_figure(scheme, title, nothing)
    return [steps], figure, figure, message(title, nothing)


def _failed(error: Exception, scheme: str) -> tuple[Any, ...]:
    figure = error_figure(scheme, *said(error))
    return (
        [html.Div(card(None, error_state(error)), style={"gridColumn": "1 / -1"})],
        figure,
        figure,
        message(*said(error), failed=True),
    )
