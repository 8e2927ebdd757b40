"""The table of the page of the cluster that says what jobs on one GPU cost each other."""

from __future__ import annotations

from collections.abc import Sequence

from dash import html
from dash.development.base_component import Component

from frontend.components.cards import card
from frontend.components.names import isolated
from frontend.components.states import gpu_chip
from frontend.formatting import count
from frontend.loading import loaded, may
from frontend.pages.cluster.forgetting import MAY_FORGET, SLOWDOWNS, forget_button
from frontend.pages.cluster.reported_tables import reported_table, who
from maat.api.evidence import SlowdownOut, model_words
from maat.client import AsyncClient, calls

SLOWDOWN_PAIRS = "cluster-slowdowns"
_COLUMNS = ("Model", "Beside", "GPU type", "GPUs", "Slowdown", "Spread", "Reports", "Use", "By")
_NUMBERS = _COLUMNS[3:7]


async def slowdowns_card(maat: AsyncClient, cluster_id: str) -> Component | None:
    cluster = await maat.send(calls.cluster(cluster_id))
    if cluster["jobs_per_gpu"] == 1:
        return None
    pairs = await maat.slowdowns(cluster_id)
    may_forget = may(await loaded(maat.send(calls.me())), MAY_FORGET)
    aside = forget_button(SLOWDOWNS) if pairs and may_forget else None
    return card("What sharing a GPU costs", slowdowns_view(pairs), aside=aside)


def slowdowns_view(pairs: Sequence[SlowdownOut]) -> Component:
    """The measured pairs: by how much a model is slowed beside another."""
    if not pairs:
        words = "No pair of jobs was measured yet: rounds go by what the cluster declares."
        return html.Div(words, className="hint")
    return reported_table(
        SLOWDOWN_PAIRS,
        [_row(pair) for pair in pairs],
        columns=_COLUMNS,
        numbers=_NUMBERS,
        label="Measured slowdowns",
    )


def _row(pair: SlowdownOut) -> html.Tr:
    numbers = (
        count(pair["gpu_count"]),
        f"{pair['slowdown']:.2f}",
        f"± {pair['spread']:.2f}",
        count(pair["reports"]),
    )
    return html.Tr(
        [
            html.Td(_side(pair["victim"], pair["victim_tenant"], pair["victim_batch"])),
            html.Td(_side(pair["partner"], pair["partner_tenant"], pair["partner_batch"])),
            html.Td(gpu_chip(pair["gpu_type"])),
            *(html.Td(number, className="number") for number in numbers),
            html.Td("decisions go by it" if pair["is_used"] else "too few reports yet"),
            html.Td(who(pair["reported_by"])),
        ]
    )


def _side(model: str, tenant: str | None, batch: int) -> str:
    whose = None if tenant is None else isolated(tenant)
    return f"{model_words(isolated(model), whose)}, {count(batch)} a GPU"
