"""The cards of the rounds before data comes."""

from __future__ import annotations

import dash_mantine_components as dmc
from dash import dcc, html

from frontend.addresses import counting
from frontend.attributes import HIDDEN, aria
from frontend.components.cards import (
    card,
    folded,
    graph,
    link_button,
    page_title,
    scrolls,
    skeleton,
)
from frontend.components.grid import RIGHT, Column, grid
from frontend.components.replay import replay_link
from frontend.figures.matrix_rows import DECIDED, ORDERS
from frontend.routing import QueryValue, query_value, title_store

LATEST = "latest"
MOST_PAGES = 99_999

COLUMNS: list[Column] = [
    {
        "field": "number",
        "headerName": "Round",
        "flex": 1,
        "minWidth": 52,
        "cellRenderer": "MaatLink",
    },
    {
        "field": "at",
        "headerName": "At",
        "headerTooltip": "Cluster time",
        "flex": 1.2,
        "minWidth": 66,
        "tooltipField": "date",
        **RIGHT,
    },
    {
        "field": "gpus",
        "headerName": "GPUs",
        "headerTooltip": "GPUs in use",
        "flex": 1.2,
        "minWidth": 72,
        "tooltipField": "gpus_exact",
        **RIGHT,
    },
    {
        "field": "jobs",
        "headerName": "Run / wait",
        "flex": 1.4,
        "minWidth": 78,
        "tooltipField": "jobs",
        **RIGHT,
    },
    {"field": "changes", "headerName": "Moves", "flex": 0.8, "minWidth": 50, **RIGHT},
    {
        "field": "gap",
        "headerName": "Gap",
        "flex": 0.9,
        "minWidth": 54,
        "tooltipField": "gap_exact",
        **RIGHT,
    },
]


def layout(
    number: QueryValue = LATEST,
    page: QueryValue = None,
    q: QueryValue = None,
    sort: QueryValue = None,
    **_query: object,
) -> html.Div:
    return html.Div(
        [
            dcc.Store(id="round-number", data=query_value(number) or LATEST),
            # Which round is drawn, so that it is not asked for again.
            dcc.Store(id="round-shown"),
            title_store("round"),
            page_title(
                "Rounds",
                replay_link(),
                link_button("Calibration", "/calibration"),
                link_button("Latest round", "/rounds"),
                note=html.Span(id="round-note", className="caption"),
            ),
            html.Div([_list_side(), _round_side(page, q, sort)], className="columns"),
        ]
    )


def _list_side() -> html.Div:
    rounds = grid(
        "rounds-grid",
        COLUMNS,
        height="max(248px, calc((100vh - 250px) * 0.56))",
        options={"rowClassRules": {"shown": "params.data.shown"}},
        getRowId="params.data.number",
    )
    prices = graph("rounds-prices", height="max(190px, calc((100vh - 250px) * 0.44))")
    return html.Div(
        [card("All rounds", rounds, className="fills"), card("Price of each GPU type", prices)],
        className="span-5 form-stack filled",
    )


def _round_side(page: QueryValue, q: QueryValue, sort: QueryValue) -> html.Div:
    """The facts of one round, and its matrix at this page of it, filtered and sorted."""
    asked, order = query_value(page) or "", query_value(sort) or DECIDED
    shown = int(asked) if counting("page", MOST_PAGES)(asked) is None else 1
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
    terms = folded(
        "The solver's terms, and what a GPU was worth",
        html.Div(id="round-terms-told"),
        box_id="round-terms",
    )
    return html.Div(
        [
            card(
                "Round",
                html.Div(
                    [html.Div(skeleton(24), id="round-verdict", role="status"), terms],
                    id="round-facts",
                ),
            ),
            card(
                "Goodput matrix",
                [_choices(query_value(q) or "", order), matrix, pages],
                aside=html.Span(legend, className="caption"),
            ),
        ],
        className="span-7 form-stack level",
    )


def _choices(sought: str, order: str) -> dmc.Group:
    """The search and the order of the jobs of the matrix."""
    return dmc.Group(
        [
            dmc.TextInput(
                id="matrix-search",
                value=sought,
                placeholder="Search jobs",
                size="xs",
                w=160,
                debounce=300,
                **aria("Search the jobs of the matrix"),
            ),
            dmc.Select(
                id="matrix-sort",
                data=[{"value": value, "label": label} for value, label in ORDERS.items()],
                value=order if order in ORDERS else DECIDED,
                size="xs",
                w=190,
                allowDeselect=False,
                **aria("Order of the jobs"),
            ),
            html.Span(id="matrix-found", className="caption", role="status"),
        ],
        gap=8,
        mb=8,
    )


def the_rounds(
    round: QueryValue = None,
    page: QueryValue = None,
    q: QueryValue = None,
    sort: QueryValue = None,
    **_query: object,
) -> html.Div:
    """Return all rounds, with the one that the address asks for, or else with the latest."""
    return layout(query_value(round) or LATEST, page, q, sort)
