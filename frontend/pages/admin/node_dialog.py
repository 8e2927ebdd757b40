"""The dialog before a node is drained, removed or given other GPUs: who is moved, what it costs."""

from __future__ import annotations

from functools import partial
from typing import TypedDict

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, html

from frontend.api import Api, Failure
from frontend.callbacks import NOTHING, NOTICES, Changes, answer, is_press_of
from frontend.components.cards import refused_state
from frontend.components.dialogs import dialog
from frontend.components.names import isolated
from frontend.components.node_effect import node_effect
from frontend.components.notices import notice, refusal
from frontend.forms import wrong_number
from maat.api.clusters import NodeBody, NodeEffectOut
from maat.client import AsyncClient

_ASKED = {"drain": "Drain", "remove": "Remove", "resize": "Set GPUs"}
_RESIZE = "GPUs that go must be drained, and nobody may hold them: drain the node first."
_DONE = {
    "drain": ("Node drained", "its jobs move at the next round."),
    "restore": ("Node in service", "the next round may use it."),
    "remove": ("Node removed", "it is no part of the cluster any more."),
    "resize": ("Node changed", "the next round follows it."),
}


class Pressed(TypedDict):
    """A press of a button of one node."""

    at: int
    action: str
    node: str
    name: str
    gpus: str
    version: str


def node_dialog() -> dmc.Modal:
    count = dmc.NumberInput(
        id="admin-node-count",
        label="GPUs of the node",
        value="",
        min=1,
        allowDecimal=False,
        clampBehavior="none",
        debounce=300,
    )
    buttons = [
        dmc.Button("Leave it", id="admin-node-no", variant="default", n_clicks=0),
        dmc.Button("Drain", id="admin-node-yes", className="danger", color="red", n_clicks=0),
    ]
    content = [
        html.Div(count, id="admin-node-count-box"),
        html.Div(id="admin-node-effect", role="status"),
        html.Div(id="admin-node-problem"),
        dmc.Group(buttons, justify="flex-end"),
    ]
    return dialog("admin-node", "Node", dmc.Stack(content, gap=12), size="xl")


def register_dialog(app: Dash, api: Api) -> None:
    answer(
        app,
        partial(ask, api),
        output={
            "opened": Output("admin-node", "opened"),
            "title": Output("admin-node", "title"),
            "count": Output("admin-node-count", "value"),
            "box": Output("admin-node-count-box", "style"),
            "effect": Output("admin-node-effect", "children"),
            "problem": Output("admin-node-problem", "children"),
            "yes": Output("admin-node-yes", "children"),
            "changed": Output("admin-nodes-changed", "data", allow_duplicate=True),
            "notices": NOTICES,
        },
        inputs={"pressed": Input("admin-node-pressed", "data")},
        state={"cluster_id": State("cluster-select", "value")},
        prevent_initial_call=True,
    )
    answer(
        app,
        partial(act_on_node, api),
        output={
            "opened": Output("admin-node", "opened", allow_duplicate=True),
            "problem": Output("admin-node-problem", "children", allow_duplicate=True),
            "count": Output("admin-node-count", "error"),
            "changed": Output("admin-nodes-changed", "data", allow_duplicate=True),
            "notices": NOTICES,
        },
        inputs={
            "does": Input("admin-node-yes", "n_clicks"),
            "_leaves": Input("admin-node-no", "n_clicks"),
        },
        state={
            "pressed": State("admin-node-pressed", "data"),
            "count": State("admin-node-count", "value"),
            "cluster_id": State("cluster-select", "value"),
        },
        prevent_initial_call=True,
        running=[(Output("admin-node-yes", "loading"), True, False)],
    )
    _register_count(app, api)


def _register_count(app: Dash, api: Api) -> None:
    answer(
        app,
        partial(try_count, api),
        output={
            "effect": Output("admin-node-effect", "children", allow_duplicate=True),
            "problem": Output("admin-node-problem", "children", allow_duplicate=True),
        },
        inputs={"count": Input("admin-node-count", "value")},
        state={
            "pressed": State("admin-node-pressed", "data"),
            "cluster_id": State("cluster-select", "value"),
        },
        prevent_initial_call=True,
    )


async def ask(api: Api, *, pressed: Pressed | None, cluster_id: str) -> Changes:
    """Say who is moved before anything is; what moves nobody is done at once."""
    if not pressed:
        return NOTHING
    action = pressed["action"]
    if action == "restore":
        return await _restore(api, pressed, cluster_id)
    changes: dict[str, object] = {
        "opened": True,
        "title": f"{_ASKED[action]}: {pressed['name']}",
        "yes": _ASKED[action],
        "count": int(pressed["gpus"]),
        "box": {"display": "" if action == "resize" else "none"},
        "problem": None,
    }
    if action == "resize":
        return {**changes, "effect": html.P(_RESIZE)}
    try:
        async with api.visitor() as maat:
            effect = await _tried(maat, cluster_id, pressed)
    except Failure as error:
        return {**changes, "effect": None, "problem": refused_state(error)}
    return {**changes, "effect": node_effect(effect, table_id="admin-node-jobs")}


async def _tried(maat: AsyncClient, cluster_id: str, pressed: Pressed) -> NodeEffectOut:
    if pressed["action"] == "remove":
        return await maat.try_node_removal(cluster_id, pressed["node"])
    return await maat.try_drain(cluster_id, pressed["node"])


async def try_count(
    api: Api, *, count: int | str | None, pressed: Pressed | None, cluster_id: str
) -> Changes:
    """Say who holds the GPUs that another number of them would take."""
    if not pressed or pressed["action"] != "resize" or wrong_count(count):
        return NOTHING
    if float(str(count)) >= int(pressed["gpus"]):
        return {"effect": html.P(_RESIZE), "problem": None}
    try:
        async with api.visitor() as maat:
            changes = {"gpu_count": count}
            effect = await maat.try_node_change(cluster_id, pressed["node"], changes)
    except Failure as error:
        return {"effect": None, "problem": refused_state(error)}
    shown = [html.P(_RESIZE), *node_effect(effect, table_id="admin-node-jobs")]
    return {"effect": shown, "problem": None}


async def _restore(api: Api, pressed: Pressed, cluster_id: str) -> Changes:
    try:
        async with api.visitor() as maat:
            version = int(pressed["version"])
            await maat.restore_node(cluster_id, pressed["node"], version=version)
    except Failure as error:
        return {"notices": refusal(error)}
    return {"changed": pressed["at"], "notices": _notice(pressed)}


async def act_on_node(
    api: Api,
    *,
    does: int | None,
    _leaves: int | None,
    pressed: Pressed | None,
    count: int | str | None,
    cluster_id: str,
) -> Changes:
    """Do what the dialog asked about, or leave it."""
    if is_press_of("admin-node-no"):
        return {"opened": False}
    if not pressed or not does:
        return NOTHING
    where, version = (cluster_id, pressed["node"]), int(pressed["version"])
    if pressed["action"] == "resize" and (wrong := wrong_count(count)):
        return {"count": wrong}
    try:
        async with api.visitor() as maat:
            match pressed["action"]:
                case "drain":
                    await maat.drain_node(*where, version=version)
                case "remove":
                    await maat.remove_node(*where, version=version)
                case "resize":
                    await maat.change_node(*where, {"gpu_count": count}, version=version)
    except Failure as error:
        return {"problem": refused_state(error), "count": ""}
    return {
        "opened": False,
        "problem": None,
        "count": "",
        "changed": pressed["at"],
        "notices": _notice(pressed),
    }


def wrong_count(count: int | str | None) -> str:
    if count in ("", None):
        return "Give a whole number from 1 up."
    return wrong_number(NodeBody, "gpu_count", count)


def _notice(pressed: Pressed) -> object:
    title, words = _DONE[pressed["action"]]
    return notice(title, f"{isolated(pressed['name'])}: {words}")
