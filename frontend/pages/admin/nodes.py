"""Nodes on the page of administration: the list, and new ones."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from uuid import uuid4

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html

from frontend.api import Api, Failure
from frontend.attributes import HIDDEN, aria, submits
from frontend.callbacks import NOTHING, NOTICES, Changes, answer
from frontend.components.cards import card, empty_state, error_state, scrolls, skeleton
from frontend.components.names import isolated
from frontend.components.next_step import without_cluster
from frontend.components.notices import notice
from frontend.forms import FormValues, errors_by_field, wrong_number
from frontend.pages.admin.cluster_rows import SHOWN_NODES, node_table
from frontend.pages.admin.clusters import MAY_CHANGE
from frontend.pages.admin.node_dialog import node_dialog, register_dialog
from frontend.shell import NO_CLUSTER
from maat.api.clusters import NodeBody
from maat.client.calls import RawBody

NEW = ("gpu_type", "gpu_count", "count", "name")
_NONE = ("No node yet", "Add nodes below; those of Slurm or of this machine appear by themselves.")


def field_id(name: str) -> str:
    return "admin-new-node-" + name.replace("_", "-")


def cards() -> html.Div:
    search = dmc.TextInput(
        id="admin-node-search", placeholder="Part of a name", value="", debounce=300, size="xs",
        **aria("Search nodes"),
    )  # fmt: skip
    content = [scrolls("admin-nodes", skeleton(120), label="Nodes"), _new()]
    return html.Div(
        [
            card("Nodes of the chosen cluster", content, aside=search, mb=12),
            node_dialog(),
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
    register_dialog(app, api)


async def show_nodes(
    api: Api, *, _live: object, _changed: int, _clusters: int, cluster_id: str | None, q: str | None
) -> Changes:
    if not cluster_id:
        return NOTHING
    if cluster_id == NO_CLUSTER:
        none = without_cluster("Nodes are of a cluster.")
        return {"nodes": none, "new": HIDDEN}
    try:
        async with api.visitor() as maat:
            me, nodes, state = await asyncio.gather(
                maat.me(), maat.every_node(cluster_id), maat.cluster_state(cluster_id)
            )
    except Failure as error:
        return {"nodes": error_state(error), "new": HIDDEN}
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
        "notices": notice("Nodes added", ", ".join(isolated(one["name"]) for one in made)),
    }


def unfinished(values: FormValues) -> dict[str, str]:
    """Return what the fields themselves can see to be wrong, by field."""
    found = {name: wrong_number(NodeBody, name, values[name]) for name in ("gpu_count", "count")}
    found |= {n: "Give a whole number from 1 up." for n in found if values[n] in ("", None)}
    if not values["gpu_type"]:
        found["gpu_type"] = "Give a GPU type, such as a100."
    return {name: words for name, words in found.items() if words}


def _beside(errors: Mapping[str, str]) -> dict[str, str]:
    return {name: errors.get(name, "") for name in NEW}
