"""Rounds: what each decided, what a GPU of each type was worth, and the goodput matrix."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import dash_mantine_components as dmc
import plotly.graph_objects as go
from dash import Dash, Input, Output, State, dcc, html
from dash.development.base_component import Component

from frontend.addresses import add_page, anything, counting
from frontend.api import Api, Failure, error_message
from frontend.callbacks import NOTHING, Changes, answer
from frontend.components.cards import (
    card,
    empty_state,
    error_state,
    graph,
    link_button,
    page_title,
    scrolls,
    skeleton,
)
from frontend.components.grid import RIGHT, Column, grid, placeholder_id
from frontend.components.states import gpu_chip
from frontend.figures.base import empty_figure, error_figure
from frontend.figures.matrix import EMPTY_PIXELS, MAX_JOBS, matrix_figure
from frontend.figures.rounds import prices_by_type, prices_figure
from frontend.formatting import ABSENT, clock, count, number, percent
from frontend.routing import (
    QueryValue,
    in_browser,
    path_to,
    query_value,
    register_title,
    title_output,
    title_store,
)
from frontend.shell import NO_CLUSTER
from frontend.theme import gpu_order
from maat.api.rounds import RoundDetailOut, RoundOut
from maat.client import ApiError, AsyncClient, calls

ROUNDS_SHOWN = 200
LATEST = "latest"
MOST_PAGES = 99_999
NO_ROUND = ("No round has run yet", "The worker runs one as soon as it is up.")
HIDDEN = {"display": "none"}

COLUMNS: list[Column] = [
    {
        "field": "number",
        "headerName": "Round",
        "flex": 1,
        "minWidth": 58,
        "cellRenderer": "MaatLink",
    },
    {
        "field": "at",
        "headerName": "At",
        "headerTooltip": "Cluster time",
        "flex": 1.2,
        "minWidth": 70,
        "tooltipField": "date",
        **RIGHT,
    },
    {
        "field": "gpus",
        "headerName": "GPUs used",
        "flex": 1.2,
        "minWidth": 76,
        "tooltipField": "gpus_exact",
        **RIGHT,
    },
    {
        "field": "jobs",
        "headerName": "Run / wait",
        "flex": 1.4,
        "minWidth": 84,
        "tooltipField": "jobs",
        **RIGHT,
    },
    {"field": "changes", "headerName": "Moves", "flex": 0.8, "minWidth": 52, **RIGHT},
    {
        "field": "gap",
        "headerName": "Gap",
        "flex": 0.9,
        "minWidth": 66,
        "tooltipField": "gap_exact",
        **RIGHT,
    },
]


def layout(number: QueryValue = LATEST, page: QueryValue = None, **_query: object) -> html.Div:
    return html.Div(
        [
            dcc.Store(id="round-number", data=query_value(number) or LATEST),
            # Which round is drawn, so that it is not asked for again.
            dcc.Store(id="round-shown"),
            title_store("round"),
            page_title(
                "Rounds",
                link_button("Calibration", "/calibration"),
                link_button("Latest round", "/rounds"),
                note=html.Span(id="round-note", className="caption"),
            ),
            html.Div([_list_side(), _round_side(query_value(page) or "")], className="columns"),
        ]
    )


def _list_side() -> html.Div:
    rounds = grid(
        "rounds-grid",
        COLUMNS,
        height="max(248px, calc((100vh - 250px) * 0.56))",
        getRowId="params.data.number",
    )
    prices = graph("rounds-prices", height="max(190px, calc((100vh - 250px) * 0.44))")
    return html.Div(
        [card("All rounds", rounds), card("Price of each GPU type", prices)],
        className="span-5 form-stack",
    )


def _round_side(page: str) -> html.Div:
    """The facts of one round, and its matrix at this page of it."""
    shown = int(page) if counting("page", MOST_PAGES)(page) is None else 1
    matrix = scrolls(
        "round-matrix-box",
        html.Div(graph("round-matrix"), id="round-matrix-room"),
        label="Goodput matrix",
    )
    pages = dmc.Pagination(
        id="round-page", total=max(shown, 1), value=max(shown, 1), size="sm", mt=8, style=HIDDEN
    )
    legend = (
        "colour: share of the job's best goodput · framed: chosen · grey: cannot run, or not shown"
    )
    return html.Div(
        [
            card("Round", html.Div(skeleton(56), id="round-facts")),
            card("Goodput matrix", [matrix, pages], aside=html.Span(legend, className="caption")),
        ],
        className="span-7 form-stack",
    )


def the_rounds(round: QueryValue = None, page: QueryValue = None, **_query: object) -> html.Div:
    """Return all rounds, with the one that the address asks for, or else with the latest."""
    return layout(query_value(round) or LATEST, page)


def register(app: Dash, api: Api) -> None:
    register_title(app, "round")
    takes = {"page": counting("page of the matrix", MOST_PAGES)}
    add_page(
        "frontend.pages.rounds",
        path="/rounds",
        name="Rounds",
        title="Rounds",
        order=4,
        layout=the_rounds,
        takes={"round": anything, **takes},
    )
    add_page(
        "frontend.pages.round",
        path_template="/rounds/<number>",
        name="Round",
        title="Round",
        layout=layout,
        takes=takes,
    )
    in_browser(
        app,
        "pageInUrl",
        Output("round-page", "id"),
        Input("round-page", "value"),
        prevent_initial_call=True,
    )
    answer(
        app,
        partial(show, api),
        output={
            "told": Output(placeholder_id("rounds-grid"), "children"),
            "rows": Output("rounds-grid", "rowData"),
            "prices": Output("rounds-prices", "figure"),
            "note": Output("round-note", "children"),
            "facts": Output("round-facts", "children"),
            "matrix": Output("round-matrix", "figure"),
            "room": Output("round-matrix-room", "style"),
            "pages": Output("round-page", "total"),
            "pager": Output("round-page", "style"),
            "shown": Output("round-shown", "data"),
            "title": title_output("round"),
        },
        inputs={
            "_live": Input("live", "data"),
            "cluster_id": Input("cluster-select", "value"),
            "scheme": Input("scheme", "data"),
            "page": Input("round-page", "value"),
        },
        state={
            "asked": State("round-number", "data"),
            "shown": State("round-shown", "data"),
        },
    )


async def show(
    api: Api,
    *,
    _live: object,
    cluster_id: str | None,
    scheme: str | None,
    page: int | None,
    asked: str,
    shown: list[object] | None,
) -> Changes:
    """Show the list, and one round: the first of the list, or the one that the address names."""
    if not cluster_id or not scheme:
        return NOTHING
    if cluster_id == NO_CLUSTER:
        words = ("No cluster yet", "Its rounds show here.")
        figure = empty_figure(scheme, *words, height=EMPTY_PIXELS)
        return _without_rounds(figure, empty_state(*words))
    try:
        async with api.visitor() as maat:
            rounds = (await maat.send(calls.rounds(cluster_id, limit=ROUNDS_SHOWN)))["items"]
            number = asked if asked != LATEST or not rounds else str(rounds[0]["number"])
            wanted: list[object] = [cluster_id, number, scheme, page]
            found = None if wanted == shown else await _one_round(maat, cluster_id, number)
    except Failure as error:
        figure = error_figure(scheme, *error_message(error), height=EMPTY_PIXELS)
        return _without_rounds(figure, error_state(error))
    listed = {
        "told": None if rounds else empty_state(*NO_ROUND),
        "rows": [row_of(entry, cluster_id) for entry in rounds],
        "prices": prices_figure(rounds, scheme=scheme),
    }
    if found is not None:
        drawn = _drawn(found, scheme, page or 1, follows=asked == LATEST)
        title = f"Round {number}" if asked != LATEST else None
        return {**listed, **drawn, "shown": wanted, "title": title}
    if wanted == shown:
        return listed
    return {**listed, **_missing(asked, cluster_id, scheme)}


async def _one_round(maat: AsyncClient, cluster_id: str, number: str) -> RoundDetailOut | None:
    """Return the round with its record, or None if the cluster has none of this number."""
    try:
        return await maat.send(calls.round_(cluster_id, number))
    except ApiError as error:
        if error.status in (404, 422):
            return None
        raise


def _drawn(entry: RoundDetailOut, scheme: str, page: int, *, follows: bool) -> Changes:
    """Return the parts of the page that show one round."""
    record = entry["record"]
    pages = max(1, -(-len(record["job_names"]) // MAX_JOBS)) if record else 1
    pruned = (
        "The record of this round was pruned",
        "Its summary stays; newer rounds have their matrix.",
    )
    figure = (
        matrix_figure(record, scheme=scheme, first=(min(page, pages) - 1) * MAX_JOBS)
        if record
        else empty_figure(scheme, *pruned, height=EMPTY_PIXELS)
    )
    least_pixels = (figure.layout.meta or {}).get("least_pixels")
    note = f"round {count(entry['number'])}, {clock(entry['at'])} of cluster time"
    return {
        "note": f"{note}, follows the latest" if follows else note,
        "facts": facts_of(entry),
        "matrix": figure,
        "room": {"minWidth": f"{least_pixels}px"} if least_pixels else {},
        "pages": pages,
        "pager": {} if pages > 1 else HIDDEN,
    }


def _no_round(figure: go.Figure, state: Component) -> Changes:
    """Return the parts of the page for one round when no round can be shown."""
    return {
        "note": "",
        "facts": state,
        "matrix": figure,
        "room": {},
        "pages": 1,
        "pager": HIDDEN,
        "shown": None,
    }


def _without_rounds(figure: go.Figure, state: Component) -> Changes:
    return {"told": state, "rows": [], "prices": figure, **_no_round(figure, state)}


def _missing(number: str, cluster_id: str, scheme: str) -> Changes:
    title, remedy = NO_ROUND
    action = None
    if number != LATEST:
        title, remedy = f"There is no round {number}", "It has not run yet, or it was pruned."
        action = dcc.Link(
            "Show the latest round",
            href=path_to("/rounds", cluster=cluster_id),
            className="button-link",
        )
        if not number.isdecimal():
            remedy = "Rounds are numbered from 1 up. Choose one from the list."
    figure = empty_figure(scheme, title, remedy, height=EMPTY_PIXELS)
    return _no_round(figure, empty_state(title, remedy, action=action))


def row_of(entry: RoundOut, cluster_id: str) -> dict[str, str]:
    return {
        "number": str(entry["number"]),
        "href": path_to(f"/rounds/{entry['number']}", cluster=cluster_id),
        "at": clock(entry["at"]).rsplit(" ", 1)[-1],
        "date": f"{clock(entry['at'])} of cluster time",
        "gpus": count(entry["gpus_used"]),
        "gpus_exact": f"{count(entry['gpus_used'])} of {count(entry['gpus_total'])}",
        "jobs": f"{count(entry['running_jobs'])} / {count(entry['pending_jobs'])}",
        "changes": count(entry["changes"]),
        "gap": gap_text(entry["gap"]),
        "gap_exact": ABSENT
        if entry["gap"] is None
        else f"{entry['gap']:.3g} as a share of the bound",
    }


def gap_text(gap: float | None) -> str:
    """A proved optimum reads `0`; an open gap its share of the bound."""
    if gap is None:
        return ABSENT
    return "0" if gap < 1e-9 else "<0.1 %" if gap < 0.001 else f"{gap * 100:.1f} %"


def facts_of(entry: RoundDetailOut) -> list[Component]:
    """What a round decided, how sure the solver was, and the prices."""
    parts: list[Component] = []
    if entry["fallback"]:
        message = entry["message"] or "The present allocation stayed."
        parts.append(dmc.Alert(message, title="The solver fell back", color="yellow", mb=8))
    solved = [html.Span([html.B(name), value]) for name, value in _figures_of(entry)]
    parts.append(html.Div(solved, className="strip"))
    if _out_of_time(entry):
        ended = "⏱ A clock ended the solver, not a proof: another machine may decide otherwise."
        parts.append(html.Div(ended, className="state state-yellow wraps"))
    prices = prices_by_type(entry["prices"] or {})
    chips = [gpu_chip(name, f"{name} price {number(prices[name])}") for name in gpu_order(prices)]
    parts.append(html.Div(chips, className="legend", style={"marginTop": "8px"}))
    return parts


def _figures_of(entry: RoundOut) -> Sequence[tuple[str, str]]:
    used, there = entry["gpus_used"], entry["gpus_total"]
    share = percent(used / there) if there else ABSENT
    return [
        ("Policy", entry["policy"]),
        ("Placer", entry["placer"]),
        ("Status", entry["status"]),
        ("Method", entry["method"] or ABSENT),
        ("Objective", number(entry["objective"], 5)),
        ("Gap", gap_text(entry["gap"])),
        ("Solve", _milliseconds(entry["solve_seconds"])),
        ("Decision", _milliseconds(entry["policy_seconds"])),
        ("Placement", _milliseconds(entry["place_seconds"])),
        ("GPUs", f"{count(used)} of {count(there)} ({share})"),
        ("Running", count(entry["running_jobs"])),
        ("Pending", count(entry["pending_jobs"])),
        ("Moves", count(entry["changes"])),
    ]


def _milliseconds(seconds: float | None) -> str:
    return ABSENT if seconds is None else f"{seconds * 1000:.1f} ms"


def _out_of_time(entry: RoundDetailOut) -> bool:
    """Return whether a clock ended the solver; False if the record was pruned."""
    record = entry["record"]
    return bool(record and record["report"].get("out_of_time"))
