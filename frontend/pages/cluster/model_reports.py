"""Of how many jobs of each model there are reports, who reported, and how that is forgotten."""

from __future__ import annotations

from collections.abc import Sequence

from dash import html
from dash.development.base_component import Component

from frontend.components.cards import card
from frontend.components.names import cut_name
from frontend.formatting import count
from frontend.loading import loaded, may
from frontend.pages.cluster.forgetting import MAY_FORGET, MODEL, forget_button
from frontend.pages.cluster.reported_tables import reported_table, who
from maat.api.evidence import ModelEvidenceOut, model_words
from maat.client import AsyncClient, calls

MODEL_REPORTS = "cluster-model-reports"
_COLUMNS = ("Model", "Steps of jobs", "Gradients of jobs", "Ended well", "By", "")
_NUMBERS = _COLUMNS[1:4]


async def model_reports_card(maat: AsyncClient, cluster_id: str) -> Component | None:
    models = await maat.model_evidence(cluster_id)
    if not any(model["beliefs"] or model["gradients"] for model in models):
        return None
    may_forget = may(await loaded(maat.send(calls.me())), MAY_FORGET)
    return card("What jobs reported", model_reports_view(models, may_forget=may_forget))


def model_reports_view(models: Sequence[ModelEvidenceOut], *, may_forget: bool) -> Component:
    return reported_table(
        MODEL_REPORTS,
        [_row(model, may_forget=may_forget) for model in models],
        columns=_COLUMNS,
        numbers=_NUMBERS,
        label="What jobs reported of models",
    )


def _row(one: ModelEvidenceOut, *, may_forget: bool) -> html.Tr:
    button = forget_button(MODEL, model=one["model"], tenant=one["tenant"] or "")
    return html.Tr(
        [
            html.Td(cut_name(model_words(one["model"], one["tenant"]))),
            *(
                html.Td(count(number), className="number")
                for number in (one["beliefs"], one["gradients"], one["history"])
            ),
            html.Td(who(one["reported_by"])),
            html.Td(button if may_forget else ""),
        ]
    )
