"""The page's parts: figures and tables of each kind of experiment, of which one kind is shown."""

from __future__ import annotations

import dash_mantine_components as dmc
from dash import dcc, html
from dash.development.base_component import Component

from frontend.components.cards import card, graph, scrolls, skeleton
from frontend.components.operations import cancel_stores
from frontend.figures.experiments import HEIGHT
from frontend.routing import QueryValue, query_value, title_store

EXPERIMENT = "experiment"
# Title and id of each figure, by kind.
FIGURES = {
    "autoscaling": (
        ("Nodes over time", "nodes"),
        ("Statistical efficiency over time", "efficiency"),
        ("Cost against time", "cost"),
    ),
    "tuning": (("Trials over time", "trials"), ("Best score over time", "scores")),
}
# Title, id and width of each table, by kind.
TABLES = {
    "autoscaling": (("Runs", "runs", 6),),
    "tuning": (("Searches", "searches", 5), ("Best trials", "best", 7)),
}
# The style of what is not shown now: it keeps its width, so that charts are drawn in theirs.
UNSHOWN = {"visibility": "hidden", "height": 0, "overflow": "hidden"}
BELOW = {"marginTop": 12}  # the style of what was asked for, once it is shown
# The tables that can be saved.
SAVED = {"runs": "runs", "searches": "searches", "best": "all trials"}


def layout(experiment_id: QueryValue = "", **_query: object) -> html.Div:
    head = [
        html.Div(skeleton(28), id="experiment-head", style={"minWidth": "320px"}),
        html.Div(id="experiment-actions"),
    ]
    return html.Div(
        [
            dcc.Store(id="experiment-id", data=query_value(experiment_id) or ""),
            title_store(EXPERIMENT),
            *cancel_stores(EXPERIMENT),
            dcc.Download(id="experiment-file"),
            dmc.Group(head, justify="space-between", className="page-head"),
            html.Div(id="experiment-verdict", className="verdict sentence", role="status"),
            html.Div(id="experiment-progress"),
            *(
                html.Div(_cards(kind), id=f"experiment-{kind}", className="columns", style=UNSHOWN)
                for kind in FIGURES
            ),
            html.Div(
                card("What was played", html.Div(id="experiment-request"), className="span-12"),
                id="experiment-asked",
                className="columns",
                style=UNSHOWN,
            ),
        ]
    )


def _cards(kind: str) -> list[Component]:
    figures = [
        card(title, graph(f"experiment-{name}", height=HEIGHT), className="span-6")
        for title, name in FIGURES[kind]
    ]
    tables = [
        card(
            title,
            scrolls(f"experiment-{name}", skeleton(120), label=title),
            aside=_save(name),
            className=f"span-{width}",
        )
        for title, name, width in TABLES[kind]
    ]
    return [*figures, *tables]


def _save(name: str) -> dmc.Button:
    return dmc.Button(
        f"Download {SAVED[name]} (CSV)", id=f"experiment-{name}-csv", variant="default", size="xs"
    )
