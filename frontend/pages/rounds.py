"""Rounds: what each decided, how sure the solver was, what a GPU of each type was worth, and the goodput matrix with the chosen cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, ctx, dcc, html, no_update

from frontend.api import Api, Failure, said
from frontend.components.cards import card, empty_state, error_state, graph, link_button, page_title, skeleton
from frontend.components.grid import RIGHT, grid
from frontend.components.states import gpu_chip
from frontend.figures.base import empty_figure, error_figure
from frontend.figures.matrix import MAX_JOBS, matrix_figure
from frontend.figures.rounds import prices_by_type, prices_figure
from frontend.formatting import ABSENT, clock, number, percent
from frontend.routing import add_page, one
from frontend.shell import NO_CLUSTER
from frontend.theme import gpu_order
from maat.client import ApiError, calls

ROUNDS_SHOWN = 200
LATEST = "latest"

COLUMNS = [
    {"field": "number", "headerName": "Round", "flex": 1, "minWidth": 54, "cellRenderer": "MaatLink"},
    {"field": "at", "headerName": "At (UTC)", "flex": 1.4, "minWidth": 80, "tooltipField": "date", **RIGHT},
    {"field": "gpus", "headerName": "GPUs", "flex": 1, "minWidth": 58, **RIGHT},
    {"field": "jobs", "headerName": "Run / wait", "flex": 1.4, "minWidth": 80, **RIGHT},
    {"field": "changes", "headerName": "Moves", "flex": 1, "minWidth": 58, **RIGHT},
    {"field": "gap", "headerName": "Gap", "flex": 1.3, "minWidth": 72, **RIGHT},
]


def layout(number: Any = LATEST, **_query: Any) -> html.Div:
    return html.Div(
        [
            dcc.Store(id="round-number", data=one(number) or LATEST),
            dcc.Store(id="rounds-grid-id", data="rounds-grid"),
            page_title("Rounds", link_button("Latest round", "/rounds"), note=html.Span(id="round-note", className="caption")),
            html.Div(
                [
                    html.Div(
                        [
                            card(
                                "All rounds",
                                grid(
                                    "rounds-grid",
                                    COLUMNS,
                                    height="max(248px, calc((100vh - 250px) * 0.56))",
                                    rowData=[],
                                    getRowId="params.data.number",
                                ),
                            ),
                            card("Price of each GPU type", graph("rounds-prices", height="max(190px, calc((100vh - 250px) * 0.44))")),
                        ],
                        className="span-5 form-stack",
                    ),
                    html.Div(
                        [
                            card("Round", html.Div(skeleton(56), id="round-facts")),
                            card(
                                "Goodput matrix",
                                [
                                    html.Div(graph("round-matrix"), id="round-matrix-box"),
                                    dmc.Pagination(id="round-page", total=1, value=1, size="sm", mt=8, style={"display": "none"}),
                                ],
                                aside=html.Span(
                                    "colour: goodput as a share of the job's best · framed: chosen · grey: cannot run", className="caption"
                                ),
                            ),
                        ],
                        className="span-7 form-stack",
                    ),
                ],
                className="columns",
            ),
        ]
    )


def register(app: Dash, api: Api) -> None:
    add_page("frontend.pages.rounds", path="/rounds", name="Rounds", title="Rounds", order=4, layout=layout)
    add_page("frontend.pages.round", path_template="/rounds/<number>", name="Round", title="Round", layout=layout)

    @app.callback(
        Output("rounds-grid", "rowData"),
        Output("rounds-prices", "figure"),
        Input("live", "data"),
        Input("cluster-select", "value"),
        Input("scheme", "data"),
    )
    async def list_rounds(_live: Any, cluster_id: str | None, scheme: str | None) -> tuple[Any, Any]:
        if not cluster_id or not scheme:
            return no_update, no_update
        if cluster_id == NO_CLUSTER:
            return [], empty_figure(scheme, "No cluster yet", "Its rounds show here.")
        try:
            async with api.visitor() as maat:
                page = await maat.send(calls.rounds(cluster_id, limit=ROUNDS_SHOWN))
        except Failure as error:
            return [], error_figure(scheme, *said(error))
        return [row_of(entry) for entry in page["items"]], prices_figure(page["items"], scheme=scheme)

    @app.callback(
        Output("round-note", "children"),
        Output("round-facts", "children"),
        Output("round-matrix", "figure"),
        Output("round-page", "total"),
        Output("round-page", "style"),
        Input("live", "data"),
        Input("cluster-select", "value"),
        Input("scheme", "data"),
        Input("round-page", "value"),
        State("round-number", "data"),
        State("round-note", "children"),
    )
    async def show(_live: Any, cluster_id: str | None, scheme: str | None, page: int, number: str, shown: str | None) -> tuple[Any, ...]:
        # A page that opens has several triggers at once, and a beat may overtake its first answer: only a beat on a shown round is idle.
        idle = number != LATEST and bool(shown) and set(ctx.triggered_prop_ids) == {"live.data"}
        if not cluster_id or not scheme or idle:
            return (no_update,) * 5
        if cluster_id == NO_CLUSTER:
            return (
                "",
                empty_state("No cluster yet", "Its rounds show here."),
                empty_figure(scheme, "No cluster yet", "", height=300),
                1,
                {"display": "none"},
            )
        try:
            async with api.visitor() as maat:
                entry = await maat.send(calls.round_(cluster_id, number))
        except Failure as error:
            return _failed(error, scheme, number)
        record = entry.get("record")
        pages = max(1, -(-len(record["job_names"]) // MAX_JOBS)) if record else 1
        figure = (
            matrix_figure(record, scheme=scheme, first=(min(page or 1, pages) - 1) * MAX_JOBS)
            if record
            else empty_figure(
                scheme, "The record of this round was pruned", "Its summary stays; newer rounds have their matrix.", height=300
            )
        )
        note = f"round {entry['number']}, {clock(entry['at'])} UTC" + (", follows the latest" if number == LATEST else "")
        return note, _facts_of(entry), figure, pages, {} if pages > 1 else {"display": "none"}


def row_of(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "number": str(entry["number"]),
        "href": f"/rounds/{entry['number']}",
        "at": clock(entry["at"]).rsplit(" ", 1)[-1],
        "date": clock(entry["at"]),
        "gpus": f"{entry['gpus_used']}/{entry['gpus_total']}",
        "jobs": f"{entry['running_jobs']} / {entry['pending_jobs']}",
        "changes": entry["changes"],
        "gap": gap_text(entry["gap"]),
    }


def gap_text(gap: float | None) -> str:
    """A proved optimum reads `0`; an open gap its share of the bound."""
    if gap is None:
        return ABSENT
    return "0" if gap < 1e-9 else f"{gap * 100:.1g} %"


def _facts_of(entry: Mapping[str, Any]) -> list[Any]:
    solved = [
        ("Policy", entry["policy"]),
        ("Placer", entry["placer"]),
        ("Status", entry["status"]),
        ("Method", entry["method"] or ABSENT),
        ("Objective", number(entry["objective"], 5)),
        ("Gap", gap_text(entry["gap"])),
        ("Solve", ABSENT if entry["solve_seconds"] is None else f"{entry['solve_seconds'] * 1000:.1f} ms"),
        ("Policy", f"{entry['policy_seconds'] * 1000:.1f} ms"),
        ("Placement", f"{entry['place_seconds'] * 1000:.1f} ms"),
        (
            "GPUs",
            f"{entry['gpus_used']} of {entry['gpus_total']} ({percent(entry['gpus_used'] / entry['gpus_total']) if entry['gpus_total'] else ABSENT})",
        ),
        ("Running", str(entry["running_jobs"])),
        ("Pending", str(entry["pending_jobs"])),
        ("Moves", str(entry["changes"])),
    ]
    solved[7] = ("Decision", solved[7][1])
    ended = "⏱ A clock ended the solver, not a proof: another machine may decide otherwise."
    timed_out = [html.Div(ended, className="state state-yellow wraps")] if _out_of_time(entry) else []
    prices = prices_by_type(entry["prices"] or {})
    chips = [gpu_chip(name, f"{name} price {number(prices[name])}") for name in gpu_order(prices)]
    fell_back = (
        [dmc.Alert(entry["message"] or "The present allocation stayed.", title="The solver fell back", color="yellow", mb=8)]
        if entry["fallback"]
        else []
    )
    return [
        *fell_back,
        html.Div([html.Span([html.B(name), value]) for name, value in solved], className="strip"),
        *timed_out,
        html.Div(chips, className="legend", style={"marginTop": "8px"}),
    ]


def _out_of_time(entry: Mapping[str, Any]) -> bool:
    """Whether a clock ended the solver; of a round whose record was pruned nobody knows."""
    record = entry.get("record")
    return bool(record and record["report"].get("out_of_time"))


def _failed(error: Exception, scheme: str, number: str) -> tuple[Any, ...]:
    hidden = {"display": "none"}
    if isinstance(error, ApiError) and error.status in (404, 422):
        title = "No round has run yet" if number == LATEST else f"There is no round {number}"
        remedy = "The worker runs one as soon as it is up." if number == LATEST else "It has not run yet, or it was pruned."
        if number != LATEST and not number.isdecimal():
            remedy = "Rounds are numbered from 0 up. Choose one from the list."
        return "", empty_state(title, remedy), empty_figure(scheme, title, remedy, height=300), 1, hidden
    return "", error_state(error), error_figure(scheme, *said(error), height=300), 1, hidden
