"""Tables of what jobs reported: when they are drawn, how they look, and who reported, in words."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial

from dash import Dash, Input, Output, html
from dash.development.base_component import Component

from frontend.api import Api, Failure
from frontend.callbacks import NOTHING, Changes, answer
from frontend.components.cards import error_state, scrolls
from frontend.components.names import isolated
from frontend.shell import NO_CLUSTER
from maat.api.evidence import ReportersOut, reporters_words
from maat.client import AsyncClient

CardOf = Callable[[AsyncClient, str], Awaitable[Component | None]]
"""Reads what is reported of a cluster and returns its card; None: there is nothing to show."""


def reported_place(name: str) -> html.Div:
    """Where a card stands."""
    return html.Div(id=name, className="span-12")


def register_reported(app: Dash, api: Api, name: str, card_of: CardOf) -> None:
    """Draw a card again with every round, and after what the visitor did on the page."""
    answer(
        app,
        partial(_show, api, card_of),
        output={"card": Output(name, "children")},
        inputs={
            "cluster_id": Input("cluster-select", "value"),
            "_live": Input("live", "data"),
            "_acted": Input("cluster-acted", "data"),
        },
    )


async def _show(
    api: Api, card_of: CardOf, *, cluster_id: str | None, _live: object, _acted: object
) -> Changes:
    if not cluster_id or cluster_id == NO_CLUSTER:
        return NOTHING
    try:
        async with api.visitor() as maat:
            return {"card": await card_of(maat, cluster_id)}
    except Failure as error:
        return {"card": error_state(error)}


def reported_table(
    name: str,
    rows: Sequence[html.Tr],
    *,
    columns: Sequence[str],
    numbers: Collection[str],
    label: str,
) -> Component:
    """Return a table that scrolls. `numbers`: the columns whose heads stand at the right."""
    heads = [html.Th(head, className="number" if head in numbers else None) for head in columns]
    table = html.Table(
        [html.Thead(html.Tr(heads)), html.Tbody(list(rows))], className="plain-table"
    )
    return scrolls(f"{name}-table", table, label=label)


def who(reporters: ReportersOut) -> str:
    names = [isolated(name) for name in reporters["tenants"]]
    return reporters_words({**reporters, "tenants": names})
