"""Of how many jobs of each model there are reports, who reported, and how that is forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from dash import Dash, Input, Output, html
from dash.development.base_component import Component

from frontend.api import Api, Failure
from frontend.callbacks import NOTHING, Changes, answer
from frontend.components.cards import card, error_state, scrolls
from frontend.components.names import cut_name
from frontend.formatting import count
from frontend.loading import loaded, may
from frontend.pages.cluster.forgetting import MAY_FORGET, MODEL, forget_button
from frontend.pages.cluster.reporters import who
from frontend.shell import NO_CLUSTER
from maat.api.evidence import ModelEvidenceOut, model_words
from maat.client import calls

_COLUMNS = ("Model", "Steps of jobs", "Gradients of jobs", "Ended well", "By", "")
_NUMBERS = _COLUMNS[1:4]


def model_reports_place() -> html.Div:
    """Where the table stands, on clusters whose jobs have reported."""
    return html.Div(id="cluster-model-reports", className="span-12")


def register_model_reports(app: Dash, api: Api) -> None:
    answer(
        app,
        partial(show_model_reports, api),
        output={"table": Output("cluster-model-reports", "children")},
        inputs={
            "cluster_id": Input("cluster-select", "value"),
            "_live": Input("live", "data"),
            "_acted": Input("cluster-acted", "data"),
        },
    )


async def show_model_reports(
    api: Api, *, cluster_id: str | None, _live: object, _acted: object
) -> Changes:
    if not cluster_id or cluster_id == NO_CLUSTER:
        return NOTHING
    try:
        async with api.visitor() as maat:
            models = await maat.model_evidence(cluster_id)
            may_forget = may(await loaded(maat.send(calls.me())), MAY_FORGET)
    except Failure as error:
        return {"table": error_state(error)}
    if not any(one["beliefs"] or one["gradients"] for one in models):
        return {"table": None}
    return {"table": card("What jobs reported", model_reports_view(models, may_forget=may_forget))}


def model_reports_view(models: Sequence[ModelEvidenceOut], *, may_forget: bool) -> Component:
    cells = [html.Th(name, className="number" if name in _NUMBERS else None) for name in _COLUMNS]
    rows = [_row(one, may_forget=may_forget) for one in models]
    table = html.Table([html.Thead(html.Tr(cells)), html.Tbody(rows)], className="plain-table")
    return scrolls("cluster-model-reports-table", table, label="What jobs reported of models")


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
