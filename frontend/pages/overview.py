"""The overview: how much of the cluster works, on what, for whom, and what waits."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html
from dash.development.base_component import Component

from frontend.addresses import add_page, among
from frontend.api import Api, Failure, error_message
from frontend.callbacks import NOTHING, NOTICES, Changes, answer
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
from frontend.routing import QueryValue, in_browser, path_to, query_value
from frontend.shell import NO_CLUSTER
from maat.api.clusters import ClusterStateOut
from maat.api.job_answers import JobOut
from maat.api.rounds import RoundOut
from maat.client import calls

DEMO_JOBS = 20
# The room below the tiles on the first screen: two charts share it, the map stands beside them.
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


def layout(range: QueryValue = None, **_query: object) -> html.Div:
    note = html.Span(
        id="overview-note",
        className="caption",
        title="The cluster's own clock, in which all times of its jobs are told",
    )
    charts = [
        card(
            "GPUs in use",
            graph("overview-usage", height=USAGE_HEIGHT),
            aside=_range_choice(query_value(range)),
        ),
        card("Jobs", graph("overview-pending", height=JOBS_HEIGHT)),
    ]
    return html.Div(
        [
            page_title(
                "Overview",
                dmc.Button("Add demo jobs", id="overview-demo", variant="default", size="xs"),
                link_button("Submit job", "/submit", variant="primary"),
                note=note,
            ),
            html.Div([skeleton(84) for _ in TILES], id="overview-tiles", className="tiles"),
            html.Div(
                [html.Div(charts, className="span-7 form-stack"), _map_card()],
                className="columns",
            ),
        ]
    )


def _range_choice(asked: str | None) -> dmc.SegmentedControl:
    """The choice of the time span that the charts show."""
    return dmc.SegmentedControl(
        id="overview-range",
        data=[{"value": value, "label": label} for value, label in RANGES],
        value=asked if asked in dict(RANGES) else DEFAULT_RANGE,
        size="xs",
        transitionDuration=0,
    )


def _map_card() -> Component:
    words = "As a table"
    link = dcc.Link(
        words, href="/cluster", className="caption", id={"to": "/cluster", "words": words}
    )
    drawn = cluster_map("overview", height=MAP_HEIGHT, smallest_pixels=7)
    return card("Cluster map", drawn, aside=link, className="span-5")


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
    answer(
        app,
        partial(show, api),
        output={
            "note": Output("overview-note", "children"),
            "tiles": Output("overview-tiles", "children"),
            "usage": Output("overview-usage", "figure"),
            "pending": Output("overview-pending", "figure"),
            "drawing": Output("overview-drawing", "data"),
        },
        inputs={
            "_live": Input("live", "data"),
            "cluster_id": Input("cluster-select", "value"),
            "scheme": Input("scheme", "data"),
            "span": Input("overview-range", "value"),
        },
        state={"known": State("overview-known", "data")},
    )
    answer(
        app,
        partial(add_demo_jobs, api),
        output={"notices": NOTICES},
        inputs={"clicks": Input("overview-demo", "n_clicks")},
        state={"cluster_id": State("cluster-select", "value")},
        prevent_initial_call=True,
        running=[(Output("overview-demo", "disabled"), True, False)],
    )


async def show(
    api: Api,
    *,
    _live: object,
    cluster_id: str | None,
    scheme: str | None,
    span: str,
    known: Known | None,
) -> Changes:
    if not cluster_id or not scheme:
        return NOTHING
    if cluster_id == NO_CLUSTER:
        return _without_cluster(scheme)
    try:
        async with api.visitor() as maat:
            state = await maat.send(calls.cluster_state(cluster_id))
            timeline, waiting, rounds, counted = await asyncio.gather(
                maat.send(calls.timeline(cluster_id, start=_start(state["now"], span), points=600)),
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
        return _failed(error, scheme)
    series = timeline["series"]
    return {
        "note": f"cluster time {clock(state['now'])}",
        "tiles": _tiles(
            Look(cluster_id, state, counted["state_counts"], waiting["items"], rounds["items"])
        ),
        "usage": usage_figure(
            series["gpus_used_by_type"], series["capacity_by_type"], scheme=scheme
        ),
        "pending": pending_figure(series["pending_jobs"], series["running_jobs"], scheme=scheme),
        "drawing": drawing_of(state["gpus"], known, scheme=scheme, faults=state["faults"]),
    }


def _start(now: str, span: str) -> str | None:
    """The beginning of the span that ends now; None for all there is."""
    moment = parse_time(now)
    return (
        None
        if span == "all" or moment is None
        else (moment - timedelta(seconds=int(span))).isoformat()
    )


async def add_demo_jobs(api: Api, *, clicks: int | None, cluster_id: str | None) -> Changes:
    """Add demo jobs to a cluster, and say so."""
    if not clicks:
        return NOTHING
    if cluster_id in (None, NO_CLUSTER):
        return {"notices": notice("No cluster", "Create a cluster first: POST /api/v1/clusters.")}
    try:
        async with api.visitor() as maat:
            await maat.send(calls.add_demo_jobs(count=DEMO_JOBS, cluster_id=cluster_id))
    except Failure as error:
        return {"notices": refusal(error)}
    words = notice(f"{DEMO_JOBS} demo jobs added", "The next round considers them.")
    return {"notices": words}


@dataclass(frozen=True, slots=True)
class Look:
    """What the tiles sum up.

    `counts`: jobs by state. `waiting`: the job that has waited longest for its first GPU, if any.
    `rounds`: the latest few, newest first.
    """

    cluster_id: str
    state: ClusterStateOut
    counts: Mapping[str, int]
    waiting: Sequence[JobOut]
    rounds: Sequence[RoundOut]

    def counted(self, states: Sequence[str]) -> int:
        return sum(self.counts.get(name, 0) for name in states)

    def jobs_in(self, *states: str) -> str:
        """Return the address of the job list with the jobs in these states."""
        return path_to("/jobs", cluster=self.cluster_id, state=states)


def _tiles(look: Look) -> list[Component]:
    return [draw(look) for draw in TILES]


def _gpus_tile(look: Look) -> Component:
    cells = look.state["gpus"]
    held = sum(cell["held"] for cell in cells)
    drained = sum(cell["drained"] for cell in cells)
    note = "no node"
    if cells:
        note = percent(held / len(cells)) + (f", {drained} drained" if drained else "")
    return tile("GPUs in use", f"{count(held)} / {count(len(cells))}", note)


def _running_tile(look: Look) -> Component:
    restarting = look.counts.get("restarting", 0)
    return tile(
        "Running",
        count(look.counted(RUNNING)),
        f"{restarting} of them restarting" if restarting else "jobs",
        href=look.jobs_in(*RUNNING),
    )


def _pending_tile(look: Look) -> Component:
    pending = look.counted(WAITING)
    note = "jobs wait for GPUs" if pending else "no job waits"
    return tile("Pending", count(pending), note, href=look.jobs_in(*WAITING))


def _wait_tile(look: Look) -> Component:
    if look.waiting:
        oldest = look.waiting[0]
        return tile(
            "Oldest wait",
            duration(oldest["wait_seconds"]),
            oldest["name"],
            href=f"/jobs/{oldest['id']}",
        )
    had_gpus = "all who wait had GPUs before"
    note = had_gpus if look.counted(WAITING) else "nothing waits to start"
    return tile("Oldest wait", ABSENT, note)


def _succeeded_tile(look: Look) -> Component:
    failed = plural(look.counts.get("failed", 0), "failed", "failed")
    finished = count(look.counts.get("succeeded", 0))
    return tile("Succeeded", finished, failed, href=look.jobs_in("succeeded"))


def _round_tile(look: Look) -> Component:
    """The round of the state that the page shows: a newer one may have come meanwhile."""
    shown = look.state["round_number"]
    latest = next((entry for entry in look.rounds if entry["number"] == shown), None)
    number, note = ABSENT, "none yet"
    if latest:
        milliseconds = (latest["policy_seconds"] + latest["place_seconds"]) * 1000
        number = count(latest["number"])
        note = f"{latest['policy']}, decided in {milliseconds:.0f} ms"
    return tile("Round", number, note, href=path_to("/rounds", cluster=look.cluster_id))


TILES = (_gpus_tile, _running_tile, _pending_tile, _wait_tile, _succeeded_tile, _round_tile)


def _without_cluster(scheme: str) -> Changes:
    title, remedy = (
        "No cluster yet",
        "Make one on the page Admin, or start Maat with `make up`.",
    )
    way = html.A("Open the API reference", href="/docs", className="button-link primary")
    steps: Sequence[str | Component] = [remedy, html.Br(), "Then submit a job, or add demo jobs."]
    nothing = "Its GPUs and jobs show here."
    figure = empty_figure(scheme, title, nothing)
    return {
        "note": "",
        "tiles": [_across(empty_state(title, steps, action=way))],
        "usage": figure,
        "pending": figure,
        "drawing": message(title, nothing),
    }


def _failed(error: Exception, scheme: str) -> Changes:
    figure = error_figure(scheme, *error_message(error))
    return {
        "note": "",
        "tiles": [_across(error_state(error))],
        "usage": figure,
        "pending": figure,
        "drawing": message(*error_message(error), failed=True),
    }


def _across(content: Component) -> html.Div:
    """A card as wide as all tiles."""
    return html.Div(card(None, content), style={"gridColumn": "1 / -1"})
