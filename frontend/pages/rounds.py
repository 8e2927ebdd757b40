"""Rounds: what each decided, how sure the solver was, what a GPU of each type was worth, and the goodput matrix with the chosen cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html, no_update

from frontend.addresses import add_page, anything, counting
from frontend.api import Api, Failure, said
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
from frontend.components.grid import RIGHT, grid, told
from frontend.components.states import gpu_chip
from frontend.figures.base import empty_figure, error_figure
from frontend.figures.matrix import EMPTY_PIXELS, MAX_JOBS, matrix_figure
from frontend.figures.rounds import prices_by_type, prices_figure
from frontend.formatting import ABSENT, clock, count, number, percent
from frontend.routing import in_browser, one, path_to
from frontend.shell import NO_CLUSTER
from frontend.theme import gpu_order
from maat.client import ApiError, AsyncClient, calls

ROUNDS_SHOWN = 200
LATEST = "latest"
MOST_PAGES = 99_999
NO_ROUND = ("No round has run yet", "The worker runs one as soon as it is up.")

COLUMNS = [
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
        "minWidth": 56,
        "tooltipField": "gap_exact",
        **RIGHT,
    },
]


# What of the page is one round's; `round-shown` says which, so that a round that is drawn is not asked for again.
ONE_ROUND = (
    Output("round-note", "children"),
    Output("round-facts", "children"),
    Output("round-matrix", "figure"),
    Output("round-matrix-room", "style"),
    Output("round-page", "total"),
    Output("round-page", "style"),
    Output("round-shown", "data"),
)
HIDDEN = {"display": "none"}


def layout(number: Any = LATEST, page: Any = None, **_query: Any) -> html.Div:
    given = one(page) or ""
    shown = int(given) if counting("page", MOST_PAGES)(given) is None else 1
    return html.Div(
        [
            dcc.Store(id="round-number", data=one(number) or LATEST),
            dcc.Store(id="round-shown"),
            page_title(
                "Rounds",
                link_button("Latest round", "/rounds"),
                note=html.Span(id="round-note", className="caption"),
            ),
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
                                    getRowId="params.data.number",
                                ),
                            ),
                            card(
                                "Price of each GPU type",
                                graph(
                                    "rounds-prices",
                                    height="max(190px, calc((100vh - 250px) * 0.44))",
                                ),
                            ),
                        ],
                        className="span-5 form-stack",
                    ),
                    html.Div(
                        [
                            card("Round", html.Div(skeleton(56), id="round-facts")),
                            card(
                                "Goodput matrix",
                                [
                                    scrolls(
                                        "round-matrix-box",
                                        html.Div(graph("round-matrix"), id="round-matrix-room"),
                                        label="Goodput matrix",
                                    ),
                                    dmc.Pagination(
                                        id="round-page",
                                        total=max(shown, 1),
                                        value=max(shown, 1),
                                        size="sm",
                                        mt=8,
                                        style={"display": "none"},
                                    ),
                                ],
                                aside=html.Span(
                                    "colour: share of the job's best goodput · framed: chosen · grey: cannot run, or not shown",
                                    className="caption",
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


def the_rounds(round: Any = None, page: Any = None, **_query: Any) -> html.Div:
    """All rounds, with the latest of them or with the one that the address asks for."""
    return layout(one(round) or LATEST, page)


def register(app: Dash, api: Api) -> None:
    takes = {"page": counting("page of the matrix", MOST_PAGES)}
    latest = {"round": anything, **takes}
    add_page(
        "frontend.pages.rounds",
        path="/rounds",
        name="Rounds",
        title="Rounds",
        order=4,
        layout=the_rounds,
        takes=latest,
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

    @app.callback(
        Output(told("rounds-grid"), "children"),
        Output("rounds-grid", "rowData"),
        Output("rounds-prices", "figure"),
        *ONE_ROUND,
        Input("live", "data"),
        Input("cluster-select", "value"),
        Input("scheme", "data"),
        Input("round-page", "value"),
        State("round-number", "data"),
        State("round-shown", "data"),
    )
    async def show(
        _live: Any, cluster_id: str | None, scheme: str | None, page: int, number: str, shown: Any
    ) -> tuple[Any, ...]:
        """The list and the round of one look at the service: the latest round is the first of the list."""
        if not cluster_id or not scheme:
            return (no_update,) * (3 + len(ONE_ROUND))
        if cluster_id == NO_CLUSTER:
            return _nothing("No cluster yet", "Its rounds show here.", scheme)
        try:
            async with api.visitor() as maat:
                rounds = (await maat.send(calls.rounds(cluster_id, limit=ROUNDS_SHOWN)))["items"]
                asked = number if number != LATEST or not rounds else str(rounds[0]["number"])
                wanted = [cluster_id, asked, scheme, page]
                found = None if wanted == shown else await _one_round(maat, cluster_id, asked)
        except Failure as error:
            figure = error_figure(scheme, *said(error), height=EMPTY_PIXELS)
            return (
                error_state(error),
                [],
                figure,
                "",
                error_state(error),
                figure,
                {},
                1,
                HIDDEN,
                None,
            )
        none_yet = None if rounds else empty_state(*NO_ROUND)
        listed = (
            none_yet,
            [row_of(entry, cluster_id) for entry in rounds],
            prices_figure(rounds, scheme=scheme),
        )
        if found is None and wanted == shown:
            return (*listed, *(no_update,) * len(ONE_ROUND))
        drawn = (
            _missing(number, cluster_id, scheme)
            if found is None
            else _drawn(found, scheme, page, follows=number == LATEST)
        )
        return (*listed, *drawn, None if found is None else wanted)


async def _one_round(maat: AsyncClient, cluster_id: str, number: str) -> Any:
    """The round with its record; None where the cluster has none of this number."""
    try:
        return await maat.send(calls.round_(cluster_id, number))
    except ApiError as error:
        if error.status in (404, 422):
            return None
        raise


def _drawn(entry: Mapping[str, Any], scheme: str, page: int, *, follows: bool) -> tuple[Any, ...]:
    """Note, facts, matrix, the room that it needs, and how many pages it has."""
    record = entry.get("record")
    pages = max(1, -(-len(record["job_names"]) // MAX_JOBS)) if record else 1
    pruned = (
        "The record of this round was pruned",
        "Its summary stays; newer rounds have their matrix.",
    )
    first = (min(page or 1, pages) - 1) * MAX_JOBS
    figure = (
        matrix_figure(record, scheme=scheme, first=first)
        if record
        else empty_figure(scheme, *pruned, height=EMPTY_PIXELS)
    )
    note = f"round {count(entry['number'])}, {clock(entry['at'])} of cluster time" + (
        ", follows the latest" if follows else ""
    )
    room = (
        {"minWidth": f"{pixels}px"}
        if (pixels := (figure.layout.meta or {}).get("least_pixels"))
        else {}
    )
    return note, _facts_of(entry), figure, room, pages, {} if pages > 1 else HIDDEN


def _nothing(title: str, remedy: str, scheme: str) -> tuple[Any, ...]:
    figure = empty_figure(scheme, title, remedy, height=EMPTY_PIXELS)
    return (
        empty_state(title, remedy),
        [],
        figure,
        "",
        empty_state(title, remedy),
        figure,
        {},
        1,
        HIDDEN,
        None,
    )


def _missing(number: str, cluster_id: str, scheme: str) -> tuple[Any, ...]:
    title, remedy = (
        NO_ROUND
        if number == LATEST
        else (f"There is no round {number}", "It has not run yet, or it was pruned.")
    )
    if number != LATEST and not number.isdecimal():
        remedy = "Rounds are numbered from 1 up. Choose one from the list."
    action = (
        None
        if number == LATEST
        else dcc.Link(
            "Show the latest round",
            href=path_to("/rounds", cluster=cluster_id),
            className="button-link",
        )
    )
    return (
        "",
        empty_state(title, remedy, action=action),
        empty_figure(scheme, title, remedy, height=EMPTY_PIXELS),
        {},
        1,
        HIDDEN,
    )


def row_of(entry: Mapping[str, Any], cluster_id: str) -> dict[str, Any]:
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


def _facts_of(entry: Mapping[str, Any]) -> list[Any]:
    solved = [
        ("Policy", entry["policy"]),
        ("Placer", entry["placer"]),
        ("Status", entry["status"]),
        ("Method", entry["method"] or ABSENT),
        ("Objective", number(entry["objective"], 5)),
        ("Gap", gap_text(entry["gap"])),
        (
            "Solve",
            ABSENT if entry["solve_seconds"] is None else f"{entry['solve_seconds'] * 1000:.1f} ms",
        ),
        ("Policy", f"{entry['policy_seconds'] * 1000:.1f} ms"),
        ("Placement", f"{entry['place_seconds'] * 1000:.1f} ms"),
        (
            "GPUs",
            f"{count(entry['gpus_used'])} of {count(entry['gpus_total'])} ({percent(entry['gpus_used'] / entry['gpus_total']) if entry['gpus_total'] else ABSENT})",
        ),
        ("Running", count(entry["running_jobs"])),
        ("Pending", count(entry["pending_jobs"])),
        ("Moves", count(entry["changes"])),
    ]
    solved[7] = ("Decision", solved[7][1])
    ended = "⏱ A clock ended the solver, not a proof: another machine may decide otherwise."
    timed_out = (
        [html.Div(ended, className="state state-yellow wraps")] if _out_of_time(entry) else []
    )
    prices = prices_by_type(entry["prices"] or {})
    chips = [gpu_chip(name, f"{name} price {number(prices[name])}") for name in gpu_order(prices)]
    fell_back = (
        [
            dmc.Alert(
                entry["message"] or "The present allocation stayed.",
                title="The solver fell back",
                color="yellow",
                mb=8,
            )
        ]
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
