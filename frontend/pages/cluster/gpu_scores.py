"""How slow GPUs of the cluster are believed to be, who reported it, and how it is forgotten."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from dash import Dash, Input, Output, html
from dash.development.base_component import Component

from frontend.api import Api, Failure
from frontend.callbacks import NOTHING, Changes, answer
from frontend.components.cards import card, error_state, scrolls
from frontend.components.states import gpu_chip
from frontend.formatting import count
from frontend.loading import loaded, may
from frontend.pages.cluster.forgetting import MAY_FORGET, SCORES, forget_button
from frontend.pages.cluster.reporters import who
from frontend.shell import NO_CLUSTER
from maat.api.evidence import GpuScoreOut
from maat.client import calls

_MOST_SHOWN = 20
_COLUMNS = ("GPU", "GPU type", "Score", "Weight", "Attempts", "Reported by")
_NUMBERS = _COLUMNS[2:5]


def gpu_scores_place() -> html.Div:
    """Where the table stands, on clusters whose GPUs jobs have compared."""
    return html.Div(id="cluster-gpu-scores", className="span-12")


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
    aside = forget_button(SCORES) if may_forget else None
    return {"table": card("How fast GPUs are", gpu_scores_view(scores), aside=aside)}


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
