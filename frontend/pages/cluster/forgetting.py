"""The question before Maat forgets what jobs reported, and what its answer does."""

from __future__ import annotations

from functools import partial
from typing import TypedDict

import dash_mantine_components as dmc
from dash import Dash, Output, State, dcc

from frontend.api import Api, Failure
from frontend.attributes import aria, click_target
from frontend.callbacks import NOTHING, Changes
from frontend.components.dialogs import question, register_question
from frontend.components.names import isolated
from frontend.components.notices import notice, refusal
from maat.api.evidence import Measured
from maat.client import calls

FORGET, MAY_FORGET = "cluster-forget", "clusters:write"
SCORES, SLOWDOWNS, MODEL = "scores", "slowdowns", "model"
_THEN = {
    SCORES: "All GPUs count as equally fast until jobs compare them again.",
    SLOWDOWNS: "What the cluster declares counts until jobs that share GPUs measure it again.",
}
_DONE = {SCORES: "Scores of GPUs forgotten", SLOWDOWNS: "Slowdowns forgotten"}


class Pressed(TypedDict):
    """A press of a button that forgets. `model`, `tenant`: of those of a model; "" for none."""

    at: int
    what: str
    model: str
    tenant: str


def forget_dialog() -> dmc.Modal:
    return question(FORGET, "Forget what jobs reported?", keeps="Keep it", does="Forget")


def pressed_store() -> dcc.Store:
    return dcc.Store(id="cluster-forget-pressed")


def register_forgetting(app: Dash, api: Api) -> None:
    register_question(
        app,
        FORGET,
        pressed="cluster-forget-pressed",
        ask=words_of,
        act=partial(forget, api),
        changed=Output("cluster-acted", "data", allow_duplicate=True),
        state={"cluster_id": State("cluster-select", "value")},
    )


def words_of(pressed: Pressed) -> str | None:
    """Return what is asked before this is forgotten; None of what no button says."""
    what = pressed.get("what")
    if what == MODEL and (model := pressed.get("model")):
        return (
            f"What jobs measured of {isolated(model)}, and how they ended, counts no "
            "more: rounds and forecasts go by what is measured from now on."
        )
    return _THEN.get(what or "")


async def forget(api: Api, *, chosen: Pressed, cluster_id: str) -> Changes:
    words = words_of(chosen)
    if words is None:
        return NOTHING
    what, model = chosen["what"], chosen.get("model", "")
    try:
        async with api.visitor() as maat:
            if what == SCORES:
                await maat.send(calls.reset_gpu_scores(cluster_id))
            elif what == SLOWDOWNS:
                await maat.send(calls.reset_slowdowns(cluster_id))
            else:
                whose = {"model": model, "tenant": chosen.get("tenant") or None}
                for measured in Measured:
                    await maat.send(calls.reset_model_evidence(cluster_id, measured.value, **whose))
    except Failure as error:
        return {"notices": refusal(error)}
    done = _DONE.get(what, f"Reports of {isolated(model)} forgotten")
    return {"changed": chosen["at"], "notices": notice(done, words)}


def forget_button(what: str, *, model: str = "", tenant: str = "") -> dmc.Button:
    label = aria(f"Forget {model}") if model else {}
    return dmc.Button(
        "Forget",
        variant="subtle",
        size="compact-xs",
        **click_target("cluster-forget-pressed", what=what, model=model, tenant=tenant),
        **label,
    )
