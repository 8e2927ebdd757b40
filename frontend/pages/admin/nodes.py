"""Nodes on the page of administration: the list, new ones, and what is asked before a change."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import TypedDict
from uuid import uuid4

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html

from frontend.api import Api, Failure
from frontend.callbacks import NOTHING, NOTICES, Changes, answer, is_press_of
from frontend.components.cards import card, empty_state, error_state, scrolls
from frontend.components.dialogs import dialog
from frontend.components.node_effect import node_effect
from frontend.components.notices import notice, refusal
from frontend.forms import FormValues, errors_by_field, wrong_number
from frontend.pages.admin.cluster_rows import SHOWN_NODES, node_table
from frontend.pages.admin.clusters import MAY_CHANGE
from frontend.routing import aria, submits
from frontend.shell import NO_CLUSTER
from maat.api.clusters import NodeBody, NodeEffectOut, NodeOut
from maat.client import AsyncClient
from maat.client.calls import RawBody

NEW = ("gpu_type", "gpu_count", "count", "name")
_NONE = ("No node yet", "Add nodes below; those of Slurm or of this machine appear by themselves.")
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


def field_id(name: str) -> str:
    return "admin-new-node-" + name.replace("_", "-")


def cards() -> html.Div:
    search = dmc.TextInput(
        id="admin-node-search", placeholder="Part of a name", value="", debounce=300, size="xs",
        **aria("Search nodes"),
    )  # fmt: skip
    content = [scrolls("admin-nodes", label="Nodes"), _new()]
    return html.Div(
        [
            card("Nodes of the chosen cluster", content, aside=search, mb=12),
            _dialog(),
            dcc.Store(id="admin-node-pressed"),
            dcc.Store(id="admin-nodes-changed", data=0),
            dcc.Store(id="admin-new-node-key", data=uuid4().hex),
        ]
    )


def _new() -> html.Div:
    def number(name: str, label: str, value: int) -> dmc.NumberInput:
        return dmc.NumberInput(
            id=field_id(name), label=label, value=value, allowDecimal=False, clampBehavior="none"
        )

    row = [
        dmc.TextInput(id=field_id("gpu_type"), label="GPU type", value="", withAsterisk=True),
        number("gpu_count", "GPUs of each", 8),
        number("count", "Nodes", 1),
        dmc.TextInput(
            id=field_id("name"), label="Name", value="", placeholder="by type and number"
        ),
    ]
    return html.Div(
        [
            html.Div(id="admin-new-node-problem"),
            html.Div(row, className="form-row wide"),
            dmc.Group([dmc.Button("Add nodes", id="admin-new-node-add", n_clicks=0)], mt=4),
        ],
        id="admin-new-node-form",
        className="form-stack",
        **submits("admin-new-node-add"),
    )


def _dialog() -> dmc.Modal:
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


def register(app: Dash, api: Api) -> None:
    answer(
        app,
        partial(show_nodes, api),
        output={
            "nodes": Output("admin-nodes", "children"),
            "new": Output("admin-new-node-form", "style"),
        },
        inputs={
            "_live": Input("live", "data"),
            "_changed": Input("admin-nodes-changed", "data"),
            "_clusters": Input("admin-clusters-changed", "data"),
            "cluster_id": Input("cluster-select", "value"),
            "q": Input("admin-node-search", "value"),
        },
    )
    answer(
        app,
        partial(add_nodes, api),
        output={
            "problem": Output("admin-new-node-problem", "children"),
            "errors": {name: Output(field_id(name), "error") for name in NEW},
            "changed": Output("admin-nodes-changed", "data", allow_duplicate=True),
            "key": Output("admin-new-node-key", "data"),
            "notices": NOTICES,
        },
        inputs={"clicks": Input("admin-new-node-add", "n_clicks")},
        state={
            "values": {name: State(field_id(name), "value") for name in NEW},
            "cluster_id": State("cluster-select", "value"),
            "key": State("admin-new-node-key", "data"),
        },
        prevent_initial_call=True,
        running=[(Output("admin-new-node-add", "loading"), True, False)],
    )
    _register_dialog(app, api)
    _register_count(app, api)


def _register_dialog(app: Dash, api: Api) -> None:
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


async def show_nodes(
    api: Api, *, _live: object, _changed: int, _clusters: int, cluster_id: str | None, q: str | None
) -> Changes:
    if not cluster_id:
        return NOTHING
    if cluster_id == NO_CLUSTER:
        none = empty_state("No cluster yet", "Make one: nodes are of a cluster.")
        return {"nodes": none, "new": {"display": "none"}}
    try:
        async with api.visitor() as maat:
            me, nodes, state = await asyncio.gather(
                maat.me(), every_node(maat, cluster_id), maat.cluster_state(cluster_id)
            )
    except Failure as error:
        return {"nodes": error_state(error), "new": {"display": "none"}}
    may = MAY_CHANGE in me["permissions"]
    found = [node for node in nodes if (q or "").lower() in node["name"].lower()]
    table = node_table(
        found[:SHOWN_NODES],
        state,
        last=nodes[-1]["id"] if len(nodes) > 1 else "",
        may=may,
        left_out=len(found) - SHOWN_NODES if len(found) > SHOWN_NODES else 0,
    )
    nothing = empty_state("No node of this name", "Search for another part of a name.")
    shown = table if found else nothing if nodes else empty_state(*_NONE)
    return {"nodes": shown, "new": {"display": "" if may else "none"}}


async def every_node(maat: AsyncClient, cluster_id: str) -> list[NodeOut]:
    page = await maat.nodes(cluster_id)
    found = list(page["items"])
    while page["next_cursor"] is not None:
        page = await maat.nodes(cluster_id, cursor=page["next_cursor"])
        found += page["items"]
    return found


async def add_nodes(
    api: Api, *, clicks: int | None, values: FormValues, cluster_id: str, key: str
) -> Changes:
    """Add the nodes of the form, or show what is wrong beside its field."""
    if not clicks:
        return NOTHING
    wrong = unfinished(values)
    if wrong:
        return {"errors": _beside(wrong), "problem": None}
    node: RawBody = {name: values[name] for name in NEW if values[name] not in ("", None)}
    try:
        async with api.visitor() as maat:
            made = await maat.add_nodes(cluster_id, {"nodes": [node]}, idempotency_key=key)
    except Failure as error:
        beside, above = errors_by_field(
            error,
            lambda found: found.field if found.field in NEW else None,
            empty_name="Give a name, or leave it empty.",
        )
        return {"errors": _beside(beside), "problem": above, "key": uuid4().hex}
    return {
        "problem": None,
        "errors": _beside({}),
        "changed": clicks,
        "key": uuid4().hex,
        "notices": notice("Nodes added", ", ".join(one["name"] for one in made)),
    }


def unfinished(values: FormValues) -> dict[str, str]:
    """Return what the fields themselves can see to be wrong, by field."""
    found = {name: wrong_number(NodeBody, name, values[name]) for name in ("gpu_count", "count")}
    found |= {n: "Give a whole number from 1 up." for n in found if values[n] in ("", None)}
    if not values["gpu_type"]:
        found["gpu_type"] = "Give a GPU type, such as a100."
    return {name: words for name, words in found.items() if words}


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
        return {**changes, "effect": None, "problem": error_state(error)}
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
        return {"effect": None, "problem": error_state(error)}
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
        return {"problem": error_state(error), "count": ""}
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
    return notice(title, f"{pressed['name']}: {words}")


def _beside(errors: Mapping[str, str]) -> dict[str, str]:
    return {name: errors.get(name, "") for name in NEW}
