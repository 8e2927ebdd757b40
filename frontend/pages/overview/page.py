"""The overview's page and its callbacks."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from functools import partial

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html
from dash.development.base_component import Component

from frontend.addresses import add_page, among
from frontend.api import Api, Failure
from frontend.callbacks import NOTHING, NOTICES, Changes, answer, in_browser
from frontend.components.cards import (
    card,
    error_state,
    graph,
    link_button,
    page_title,
    skeleton,
)
from frontend.components.cluster_map import cluster_map, drawing_of, register_cluster_map
from frontend.components.next_round import next_round
from frontend.components.next_step import NO_CLUSTER_YET, without_cluster
from frontend.components.notices import notice, refusal
from frontend.components.replay import replay_link
from frontend.figures.cluster_map import Known, message
from frontend.formatting import clock, parse_time
from frontend.loading import Loaded, by_part, failed_figure, failed_map, loaded
from frontend.pages.overview.charts import charts_of
from frontend.pages.overview.summary import (
    MOST_WAITING,
    WAITING,
    changes_list,
    troubles,
    verdict,
    waiting_table,
)
from frontend.pages.overview.tiles import RUNNING, TILES, Look, tiles_of
from frontend.routing import QueryValue, query_value
from frontend.shell import NO_CLUSTER
from maat.api.clusters import ClusterChangesOut, ClusterOut, ClusterStateOut
from maat.api.rounds import TimelineOut
from maat.client import ApiError, AsyncClient, calls
from maat.figures.base import empty_figure

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
                replay_link(),
                dmc.Button("Add demo jobs", id="overview-demo", variant="default", size="xs"),
                link_button("Submit job", "/submit", variant="primary"),
                note=note,
            ),
            html.Div(skeleton(24), id="overview-verdict", className="verdict", role="status"),
            html.Div([skeleton(84) for _ in TILES], id="overview-tiles", className="tiles"),
            html.Div(
                [
                    card(
                        "Who waits, and why",
                        html.Div(skeleton(60), id="overview-waiting"),
                        className="span-7",
                    ),
                    card(
                        "What the last round changed",
                        html.Div(skeleton(60), id="overview-changes"),
                        className="span-5",
                    ),
                    html.Div(charts, className="span-7 form-stack"),
                    _map_card(),
                ],
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
        "frontend.pages.overview",
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
            "verdict": Output("overview-verdict", "children"),
            "waiting": Output("overview-waiting", "children"),
            "changes": Output("overview-changes", "children"),
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
    async with api.visitor() as maat:
        state = await loaded(maat.send(calls.cluster_state(cluster_id)))
        cluster, changed, timeline, waiting, rounds, counted = await asyncio.gather(
            loaded(maat.send(calls.cluster(cluster_id))),
            loaded(_changed(maat, cluster_id)),
            loaded(_timeline(maat, cluster_id, state, span)),
            loaded(
                maat.jobs(
                    cluster=cluster_id,
                    state=["pending", "submitted", "profiling"],
                    sort="submitted_at",
                    limit=MOST_WAITING,
                )
            ),
            loaded(maat.send(calls.rounds(cluster_id, limit=3))),
            loaded(maat.jobs(cluster=cluster_id, limit=1)),
        )
    look = Look(cluster_id, state, counted, waiting, rounds)
    return by_part(
        {
            "note": lambda: f"cluster time {clock(state()['now'])}",
            "verdict": lambda: _verdict(cluster.answer, look),
            "waiting": lambda: waiting_table(
                waiting()["items"], waiting=look.counted(WAITING), cluster_id=cluster_id
            ),
            "changes": lambda: changes_list(
                changed(), number=state()["round_number"], cluster_id=cluster_id
            ),
            "tiles": lambda: tiles_of(look),
            "usage": lambda: charts_of(timeline(), scheme).usage,
            "pending": lambda: charts_of(timeline(), scheme).pending,
            "drawing": lambda: drawing_of(
                state()["gpus"], known, scheme=scheme, faults=state()["faults"]
            ),
        },
        failed={
            **dict.fromkeys(("note", "verdict"), lambda _: ""),
            **dict.fromkeys(("waiting", "changes"), error_state),
            **dict.fromkeys(("usage", "pending"), failed_figure(scheme)),
            "drawing": failed_map,
        },
    )


async def _timeline(
    maat: AsyncClient, cluster_id: str, state: Loaded[ClusterStateOut], span: str
) -> TimelineOut:
    start = None if span == "all" else _start(state()["now"], span)
    return await maat.send(calls.timeline(cluster_id, start=start, points=600))


async def _changed(maat: AsyncClient, cluster_id: str) -> ClusterChangesOut | None:
    """Return what the latest round changed; None where the round before it is not known."""
    try:
        return await maat.send(calls.cluster_changes(cluster_id))
    except ApiError as error:
        if error.status != 404:  # pruned
            raise
    return None


def _verdict(cluster: ClusterOut | None, look: Look) -> list[Component]:
    """Trouble first, then the cluster in a sentence. `cluster`: None if it could not be loaded."""
    sentence = verdict(
        look.state(),
        running=look.counted(RUNNING),
        waiting=look.counted(WAITING),
        failed=look.counted(["failed"]),
    )
    rounds = look.rounds.answer
    seen = troubles(cluster, look.state(), rounds["items"] if rounds else []) if cluster else []
    return [*seen, html.Div(sentence, className="sentence")]


def _start(now: str, span: str) -> str | None:
    """The beginning of the span, in seconds, that ends now."""
    moment = parse_time(now)
    return None if moment is None else (moment - timedelta(seconds=int(span))).isoformat()


async def add_demo_jobs(api: Api, *, clicks: int | None, cluster_id: str | None) -> Changes:
    """Add demo jobs to a cluster, and say so."""
    if not clicks:
        return NOTHING
    if cluster_id in (None, NO_CLUSTER):
        return {"notices": notice("No cluster", "Make one first, on the page Admin.")}
    try:
        async with api.visitor() as maat:
            await maat.send(calls.add_demo_jobs(count=DEMO_JOBS, cluster_id=cluster_id))
            considered = await next_round(maat, cluster_id, "them")
    except Failure as error:
        return {"notices": refusal(error)}
    return {"notices": notice(f"{DEMO_JOBS} demo jobs added", considered)}


def _without_cluster(scheme: str) -> Changes:
    steps = "Maat decides which jobs hold its GPUs. Then submit a job, or add demo jobs."
    nothing = "Its GPUs and jobs show here."
    figure = empty_figure(scheme, NO_CLUSTER_YET, nothing)
    return {
        "note": "",
        "verdict": "",
        "waiting": html.Div("Jobs that wait for GPUs show here.", className="hint"),
        "changes": html.Div("What each round decides shows here.", className="hint"),
        "tiles": [_across(without_cluster(steps))],
        "usage": figure,
        "pending": figure,
        "drawing": message(NO_CLUSTER_YET, nothing),
    }


def _across(content: Component) -> html.Div:
    """A card as wide as all tiles."""
    return html.Div(card(None, content), style={"gridColumn": "1 / -1"})
