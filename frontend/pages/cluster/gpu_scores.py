"""How slow GPUs of the cluster are believed to be, who reported it, and how it is forgotten."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dash import html
from dash.development.base_component import Component

from frontend.components.cards import card
from frontend.components.states import gpu_chip
from frontend.formatting import count
from frontend.loading import loaded, may
from frontend.pages.cluster.forgetting import MAY_FORGET, SCORES, forget_button
from frontend.pages.cluster.reported_tables import reported_table, who
from maat.api.evidence import GpuScoreOut
from maat.client import AsyncClient, calls

GPU_SCORES = "cluster-gpu-scores"
_MOST_SHOWN = 20
_COLUMNS = ("GPU", "GPU type", "Score", "Weight", "Attempts", "Reported by")
_NUMBERS = _COLUMNS[2:5]


async def gpu_scores_card(maat: AsyncClient, cluster_id: str) -> Component | None:
    scores = await maat.gpu_scores(cluster_id)
    if not scores:
        return None
    may_forget = may(await loaded(maat.send(calls.me())), MAY_FORGET)
    aside = forget_button(SCORES) if may_forget else None
    return card("How fast GPUs are", gpu_scores_view(scores), aside=aside)


def gpu_scores_view(scores: Sequence[GpuScoreOut]) -> Component:
    """The GPUs that differ most from the median of their type, slow ones first."""
    most = sorted(scores, key=lambda one: -abs(math.log(one["score"])))[:_MOST_SHOWN]
    rows = [_row(one) for one in sorted(most, key=lambda one: -one["score"])]
    table = reported_table(
        GPU_SCORES, rows, columns=_COLUMNS, numbers=_NUMBERS, label="Scores of GPUs"
    )
    words = (
        "A step's time over that on the median GPU of the type, by jobs that ran on several. "
        "Placers that read scores (PAL, PM-First) go by it. "
    )
    if len(scores) > len(most):
        words += f"Of {count(len(scores))} GPUs the {_MOST_SHOWN} that differ most."
    return html.Div([html.Div(words, className="hint"), table])


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
