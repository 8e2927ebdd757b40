"""The page of use and cost before its figures come."""

from __future__ import annotations

import dash_mantine_components as dmc
from dash import dcc, html
from dash.development.base_component import Component

from frontend.attributes import aria
from frontend.components.cards import card, graph, page_title, scrolls, skeleton
from frontend.components.period import period_choice
from frontend.pages.usage.prices import price_dialog, remove_dialog
from frontend.routing import QueryValue, query_value
from maat.api.usage import FORMULAS

PAGE = "usage"
BY = (
    ("tenant", "Tenant"),
    ("user", "User"),
    ("gpu_type", "GPU type"),
    ("model", "Model"),
    ("label", "Label"),
    ("day", "Day"),
)
DEFAULT_BY = "tenant"
TILES = 6
REFRESH_MILLISECONDS = 60_000


def layout(by: QueryValue = None, **query: QueryValue) -> html.Div:
    way = query_value(by)
    return html.Div(
        [
            page_title(
                "Usage & cost",
                dmc.Button("Download CSV", id="usage-csv", variant="default", size="xs"),
                note=html.Span(id="usage-note", className="caption"),
            ),
            dmc.Group(
                [*period_choice(PAGE, query), _way(way if way in dict(BY) else DEFAULT_BY)],
                gap=8,
                mb=8,
            ),
            html.Div(id="usage-told"),
            html.Div(
                [skeleton(84) for _ in range(TILES)], id="usage-tiles", className="tiles wrapping"
            ),
            html.Div(_charts(), className="columns"),
            html.Div(_tables(), className="columns", style={"marginTop": "12px"}),
            price_dialog(),
            remove_dialog(),
            dcc.Download(id="usage-file"),
            dcc.Store(id="usage-in-url"),
            dcc.Store(id="usage-prices-changed"),
            dcc.Interval(id="usage-tick", interval=REFRESH_MILLISECONDS),
        ]
    )


def _way(by: str) -> Component:
    select: Component = dmc.Select(
        id="usage-by",
        data=[{"value": value, "label": f"by {label.lower()}"} for value, label in BY],
        value=by,
        allowDeselect=False,
        size="xs",
        w=140,
        **aria("Summed up by"),
    )
    return select


def _charts() -> list[Component]:
    return [
        card(
            "GPU-hours allocated by day",
            graph("usage-rows-chart", height=320),
            className="span-7",
        ),
        card("Utilisation by GPU type", graph("usage-types-chart", height=320), className="span-5"),
        card(
            "What became of all GPU-hours",
            graph("usage-effect-chart", height=320),
            className="span-12",
        ),
    ]


def _tables() -> list[Component]:
    meanings = html.Dl(
        [
            part
            for name, formula in FORMULAS.items()
            for part in (html.Dt(name.replace("_", " ")), html.Dd(formula))
        ],
        className="facts",
    )
    return [
        card(
            "In numbers",
            scrolls("usage-table", skeleton(120), label="Use by row"),
            className="span-12",
        ),
        card(
            "GPU types",
            scrolls("usage-types", skeleton(80), label="Use by GPU type"),
            className="span-7",
        ),
        card(
            "Prices",
            scrolls("usage-prices", skeleton(60), label="Prices"),
            aside=html.Div(id="usage-price-add"),
            className="span-5",
        ),
        card("What the figures mean", meanings, className="span-12"),
    ]
