"""How slow GPUs of the cluster are believed to be, who reported it, and how it is forgotten."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TypedDict

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html
from dash.development.base_component import Component

from frontend.api import Api, Failure
from frontend.attributes import click_target
from frontend.callbacks import NOTHING, Changes, answer
from frontend.components.cards import card, error_state, scrolls
from frontend.components.dialogs import question, register_question
from frontend.components.notices import notice, refusal
from frontend.components.states import gpu_chip
from frontend.formatting import count
from frontend.loading import loaded, may
from frontend.pages.cluster.reporters import who
from frontend.shell import NO_CLUSTER
from maat.api.evidence import GpuScoreOut
from maat.client import calls

FORGET = "cluster-forget"
MAY_FORGET = "clusters:write"
_MOST_SHOWN = 20
_COLUMNS = ("GPU", "GPU type", "Score", "Weight", "Attempts", "Reported by")
_NUMBERS = _COLUMNS[2:5]
_THEN = "All GPUs count as equally fast until jobs compare them again."


class Pressed(TypedDict):
    """A press of the button that forgets the scores."""

    at: int


def gpu_scores_place() -> html.Div:
    """Where the table stands, on clusters whose GPUs jobs have compared."""
    pressed = dcc.Store(id="cluster-forget-pressed")
    return html.Div([html.Div(id="cluster-gpu-scores"), pressed], className="span-12")


def forget_dialog() -> dmc.Modal:
    return question(FORGET, "Forget what jobs said of GPUs?", keeps="Keep them", does="Forget")


def register_gpu_scores(app: Dash, api: Api) -> None:
    answer(
        app,
        partial(show_gpu_scores, api),
        output={"table": Output("cluster-gpu-scores", "children")},
        inputs={
            "cluster_id": Input("cluster-select", "value"),
            "_live": Input("live", "data"),
            "_acted": Input("cluster-acted", "data"),
        },
    )
    register_question(
        app,
        FORGET,
        pressed="cluster-forget-pressed",
        ask=lambda _: _THEN,
        act=partial(forget, api),
        changed=Output("cluster-acted", "data", allow_duplicate=True),
        state={"cluster_id": State("cluster-select", "value")},
    )


async def show_gpu_scores(
    api: Api, *, cluster_id: str | None, _live: object, _acted: object
) -> Changes:
    if not cluster_id or cluster_id == NO_CLUSTER:
        return NOTHING
    try:
        async with api.visitor() as maat:
            scores = await maat.gpu_scores(cluster_id)
            may_forget = may(await loaded(maat.send(calls.me())), MAY_FORGET)
    except Failure as error:
        return {"table": error_state(error)}
    if not scores:
        return {"table": None}
    aside = _button() if may_forget else None
    return {"table": card("How fast GPUs are", gpu_scores_view(scores), aside=aside)}


async def forget(api: Api, *, chosen: Pressed, cluster_id: str) -> Changes:
    try:
        async with api.visitor() as maat:
            await maat.send(calls.reset_gpu_scores(cluster_id))
    except Failure as error:
        return {"notices": refusal(error)}
    return {"changed": chosen["at"], "notices": notice("Scores of GPUs forgotten", _THEN)}


def gpu_scores_view(scores: Sequence[GpuScoreOut]) -> Component:
    """The GPUs that differ most from the median of their type, slow ones first."""
    most = sorted(scores, key=lambda one: -abs(math.log(one["score"])))[:_MOST_SHOWN]
    rows = [_row(one) for one in sorted(most, key=lambda one: -one["score"])]
    cells = [html.Th(name, className="number" if name in _NUMBERS else None) for name in _COLUMNS]
    table = html.Table([html.Thead(html.Tr(cells)), html.Tbody(rows)], className="plain-table")
    words = (
        "A step's time over that on the median GPU of the type, by jobs that ran on several. "
        "Placers that read scores (PAL, PM-First) go by it. "
    )
    if len(scores) > len(most):
        words += f"Of {count(len(scores))} GPUs the {_MOST_SHOWN} that differ most."
    return html.Div(
        [
            html.Div(words, className="hint"),
            scrolls("cluster-gpu-scores-table", table, label="Scores of GPUs"),
        ]
    )


def _row(one: GpuScoreOut) -> html.Tr:
    numbers = (f"{one['score']:.2f}", f"{one['weight']:.2f}", count(one["attempts"]))
    return html.Tr(
        [
            html.Td(f"{one['node']}, GPU {one['gpu_index']}"),
            html.Td(gpu_chip(one["gpu_type"])),
            *(html.Td(number, className="number") for number in numbers),
            html.Td(who(one["reported_by"])),
        ]
    )


def _button() -> dmc.Button:
    return dmc.Button(
        "Forget",
        variant="subtle",
        size="compact-xs",
        id="cluster-forget-open",
        **click_target("cluster-forget-pressed"),
    )
