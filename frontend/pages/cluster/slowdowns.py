"""The table of the page of the cluster that says what jobs on one GPU cost each other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from dash import Dash, Input, Output, html
from dash.development.base_component import Component

from frontend.api import Api, Failure
from frontend.callbacks import NOTHING, Changes, answer
from frontend.components.cards import card, error_state, scrolls
from frontend.components.names import isolated
from frontend.components.states import gpu_chip
from frontend.formatting import count
from frontend.loading import loaded, may
from frontend.pages.cluster.forgetting import MAY_FORGET, SLOWDOWNS, forget_button
from frontend.pages.cluster.reporters import who
from frontend.shell import NO_CLUSTER
from maat.api.evidence import SlowdownOut, model_words
from maat.client import calls

_COLUMNS = ("Model", "Beside", "GPU type", "GPUs", "Slowdown", "Spread", "Reports", "Use", "By")
_NUMBERS = _COLUMNS[3:7]


def slowdowns_place() -> html.Div:
    """Where the table stands, on clusters where jobs may share GPUs."""
    return html.Div(id="cluster-slowdowns", className="span-12")


def register_slowdowns(app: Dash, api: Api) -> None:
    answer(
        app,
        partial(show_slowdowns, api),
        output={"table": Output("cluster-slowdowns", "children")},
        inputs={
            "cluster_id": Input("cluster-select", "value"),
            "_live": Input("live", "data"),
            "_acted": Input("cluster-acted", "data"),
        },
    )


async def show_slowdowns(
    api: Api, *, cluster_id: str | None, _live: object, _acted: object
) -> Changes:
    if not cluster_id or cluster_id == NO_CLUSTER:
        return NOTHING
    try:
        async with api.visitor() as maat:
            cluster = await maat.send(calls.cluster(cluster_id))
            if cluster["jobs_per_gpu"] == 1:
                return {"table": None}
            pairs = await maat.slowdowns(cluster_id)
            may_forget = may(await loaded(maat.send(calls.me())), MAY_FORGET)
    except Failure as error:
        return {"table": error_state(error)}
    aside = forget_button(SLOWDOWNS) if pairs and may_forget else None
    return {"table": card("What sharing a GPU costs", slowdowns_view(pairs), aside=aside)}


def slowdowns_view(pairs: Sequence[SlowdownOut]) -> Component:
    """The measured pairs: by how much a model is slowed beside another."""
    if not pairs:
        words = "No pair of jobs was measured yet: rounds go by what the cluster declares."
        return html.Div(words, className="hint")
    cells = [html.Th(name, className="number" if name in _NUMBERS else None) for name in _COLUMNS]
    table = html.Table(
        [html.Thead(html.Tr(cells)), html.Tbody([_row(pair) for pair in pairs])],
        className="plain-table",
    )
    return scrolls("cluster-slowdowns-table", table, label="Measured slowdowns")


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
