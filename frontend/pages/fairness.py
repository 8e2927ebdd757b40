"""Fairness: rho of ended jobs by tenant, the worst cases, and shares deserved and actual."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from uuid import uuid4

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html
from dash.development.base_component import Component

from frontend.addresses import add_page
from frontend.api import Api, Failure
from frontend.attributes import aria, click_target
from frontend.callbacks import NOTHING, NOTICES, Changes, answer
from frontend.components.cards import (
    card,
    definition,
    error_state,
    graph,
    page_title,
    scrolls,
    skeleton,
)
from frontend.components.next_step import without_cluster
from frontend.components.notices import notice, refusal
from frontend.components.period import (
    asked_period,
    period_choice,
    period_inputs,
    period_parameters,
    register_period,
)
from frontend.figures.fairness import important, jain_figure, looks_of, rho_figure, shares_figure
from frontend.formatting import clock
from frontend.loading import by_part, failed_figure, loaded, may, nothing
from frontend.pages import fairness_parts as parts
from frontend.routing import QueryValue
from frontend.shell import NO_CLUSTER
from maat.api.fairness import FairnessOut
from maat.client import calls
from maat.client.calls import period_fields
from maat.figures.base import empty_figure
from maat.vocabulary import FairnessState

REFRESH_MILLISECONDS = 6000
MOST_CASES = 10
MAY_ASK_AGAIN = "clusters:write"
HEIGHT, JAIN_HEIGHT = 320, 200
STOP = "Stop"


def layout(**query: QueryValue) -> html.Div:
    again = html.Div(id="fairness-again")
    note = html.Span(id="fairness-note", className="caption")
    stores = [
        dcc.Interval(id="fairness-refresh", interval=REFRESH_MILLISECONDS),
        dcc.Store(id="fairness-pressed"),
        dcc.Store(id="fairness-operation"),
    ]
    cdf = card(
        "Finish-time fairness by tenant",
        [
            graph("fairness-rho", height=HEIGHT),
            html.Div(id="fairness-few", className="hint"),
        ],
        aside=definition("finish-time fairness", text_id="fairness-definition"),
        className="span-6",
    )
    shares = card(
        "Shares of the GPUs, deserved and actual",
        [
            graph("fairness-shares", height=HEIGHT),
            html.Div("Solid: actual. Dotted: deserved.", className="hint"),
        ],
        aside=definition("a deserved share", text_id="fairness-shares-definition"),
        className="span-6",
    )
    worst = card(
        "Worst cases",
        scrolls("fairness-worst", skeleton(160), label="Worst cases"),
        className="span-12",
    )
    jain = card(
        "Jain's index over time", graph("fairness-jain", height=JAIN_HEIGHT), className="span-12"
    )
    return html.Div(
        [
            page_title("Fairness", *period_choice("fairness", query), again, note=note),
            *stores,
            html.Div(id="fairness-verdict", className="verdict sentence", role="status"),
            html.Div(id="fairness-progress"),
            html.Div(
                [skeleton(84) for _ in range(4)], id="fairness-tiles", className="tiles wrapping"
            ),
            html.Div(id="fairness-legend", style={"marginBottom": "8px"}),
            html.Div([cdf, shares, jain, worst], className="columns"),
        ]
    )


def register(app: Dash, api: Api) -> None:
    add_page(
        __name__,
        path="/fairness",
        name="Fairness",
        title="Fairness",
        order=6,
        layout=layout,
        takes=period_parameters(),
    )
    register_period(app, "fairness")
    answer(
        app,
        partial(show, api),
        output={
            "note": Output("fairness-note", "children"),
            "again": Output("fairness-again", "children"),
            "verdict": Output("fairness-verdict", "children"),
            "progress": Output("fairness-progress", "children"),
            "tiles": Output("fairness-tiles", "children"),
            "legend": Output("fairness-legend", "children"),
            "rho": Output("fairness-rho", "figure"),
            "few": Output("fairness-few", "children"),
            "definition": Output("fairness-definition", "children"),
            "shares": Output("fairness-shares", "figure"),
            "shares_definition": Output("fairness-shares-definition", "children"),
            "jain": Output("fairness-jain", "figure"),
            "worst": Output("fairness-worst", "children"),
        },
        inputs={
            "_often": Input("fairness-refresh", "n_intervals"),
            "cluster_id": Input("cluster-select", "value"),
            "scheme": Input("scheme", "data"),
            "operation": Input("fairness-operation", "data"),
            **period_inputs("fairness"),
        },
    )
    answer(
        app,
        partial(press, api),
        output={"operation": Output("fairness-operation", "data"), "notices": NOTICES},
        inputs={"pressed": Input("fairness-pressed", "data")},
        state={
            "cluster_id": State("cluster-select", "value"),
            "operation": State("fairness-operation", "data"),
            "period": State("fairness-period", "value"),
            "days": State("fairness-days", "value"),
        },
        prevent_initial_call=True,
    )


async def show(
    api: Api,
    *,
    _often: object,
    cluster_id: str | None,
    scheme: str | None,
    operation: str | None,
    period: str,
    days: Sequence[str | None] | None,
) -> Changes:
    if not cluster_id or not scheme:
        return NOTHING
    if cluster_id == NO_CLUSTER:
        return _without_cluster(scheme)
    asked = asked_period(cluster_id, period, days)
    if asked is None:
        return {"note": "Choose the first and the last day."}
    async with api.visitor() as maat:
        found, cases, shares, me = await asyncio.gather(
            loaded(maat.fairness(**asked)),
            loaded(maat.worst_fairness(limit=MOST_CASES, **asked)),
            loaded(maat.shares(**asked)),
            loaded(maat.me()),
        )
    tenants = [] if found.answer is None else found.answer["tenants"]
    looks = looks_of(important(shares.answer, tenants), scheme)
    return by_part(
        {
            "note": lambda: _note(found()),
            "again": lambda: _again(found(), operation, may=may(me, MAY_ASK_AGAIN)),
            "verdict": lambda: parts.verdict(found()),
            "progress": lambda: parts.progress(found()),
            "tiles": lambda: parts.tiles(found, cases.answer, shares),
            "legend": lambda: parts.legend(looks, tenants, shares.answer),
            "rho": lambda: rho_figure(found()["tenants"], looks, scheme=scheme, height=HEIGHT),
            "few": lambda: parts.few_notice(found()),
            "definition": lambda: parts.definition_text(found()),
            "shares": lambda: shares_figure(shares(), looks, scheme=scheme, height=HEIGHT),
            "shares_definition": lambda: parts.shares_text(shares()),
            "jain": lambda: jain_figure(shares(), scheme=scheme, height=JAIN_HEIGHT),
            "worst": lambda: parts.worst_table(cases()),
        },
        failed={
            **dict.fromkeys(("note", "few"), lambda _: ""),
            **dict.fromkeys(("again", "verdict", "progress"), nothing),
            "tiles": lambda error: [_across(error_state(error))],
            **dict.fromkeys(("rho", "shares"), failed_figure(scheme, height=HEIGHT)),
            "jain": failed_figure(scheme, height=JAIN_HEIGHT),
            "worst": error_state,
        },
    )


def _note(found: FairnessOut) -> str:
    """Which time the figures are of."""
    return f"{clock(found['period']['from'])} to {clock(found['period']['to'])}, cluster time"


def _again(found: FairnessOut, operation: str | None, *, may: bool) -> Component | None:
    """The button that asks for rho again; while that is on its way, one that stops it."""
    by_state = found["progress"]["by_state"]
    if not may or not found["progress"]["total"]:
        return None
    open_ = by_state[FairnessState.WAITING] + by_state[FairnessState.WORKING]
    words = STOP if open_ and operation else "Work out again"
    if open_ and not operation:
        return None
    button: Component = dmc.Button(
        words,
        variant="default",
        size="xs",
        **click_target("fairness-pressed", action=words),
        **aria(f"{words}: rho of the jobs of this period"),
    )
    return button


async def press(
    api: Api,
    *,
    pressed: dict[str, str] | None,
    cluster_id: str,
    operation: str | None,
    period: str,
    days: Sequence[str | None] | None,
) -> Changes:
    """Ask for rho of the period again, or stop that."""
    asked = asked_period(cluster_id, period, days)
    if not pressed or asked is None:
        return NOTHING
    try:
        async with api.visitor() as maat:
            if pressed["action"] == STOP and operation:
                await maat.cancel_operation(operation)
                words = notice("Stopping", "What is worked out by then stays.")
                return {"operation": None, "notices": words}
            begun = await maat.send(
                calls.recompute_fairness(period_fields(asked), idempotency_key=uuid4().hex)
            )
    except Failure as error:
        return {"notices": refusal(error)}
    return {"operation": begun["id"], "notices": notice("Working rho out again", begun["message"])}


def _without_cluster(scheme: str) -> Changes:
    title, remedy = "No cluster yet", "Make one on the page Admin, or with maat create-cluster."
    figure = empty_figure(scheme, title, remedy)
    return {
        "note": "",
        "verdict": None,
        "progress": None,
        "tiles": [_across(without_cluster(remedy))],
        "legend": None,
        "rho": figure,
        "shares": figure,
        "jain": figure,
        "worst": "",
    }


def _across(content: Component) -> html.Div:
    """A card as wide as all tiles."""
    return html.Div(card(None, content), style={"gridColumn": "1 / -1"})
