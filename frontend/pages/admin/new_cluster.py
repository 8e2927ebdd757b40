"""The form of a new cluster on the page of administration."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from uuid import uuid4

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html
from dash.development.base_component import Component

from frontend.api import Api, Failure
from frontend.attributes import HIDDEN, SHOWN, submits
from frontend.callbacks import NOTHING, NOTICES, Changes, answer
from frontend.components.cards import card, error_state
from frontend.components.names import isolated
from frontend.components.notices import notice
from frontend.forms import FormValues, errors_by_field, number_or_name, wrong_number
from frontend.pages.admin.clusters import MAY_CHANGE
from frontend.pages.admin.pasted_nodes import (
    TYPES_ID,
    field_id,
    nodes_body,
    nodes_fields,
    register_nodes,
    takes_nodes,
)
from maat.api.clusters import ClusterBody, ClusterOut
from maat.client import calls
from maat.client.calls import RawBody
from maat.vocabulary import ExecutorKind

OF_SLURM = ("shared_dir", "partition")
BOUNDS = {
    "least_stay_seconds": "Least stay of a job (s)",
    "most_moves_per_hour": "Most moves in an hour",
}
FIELDS = (
    "name",
    "executor",
    "shape",
    "policy",
    "placer",
    "round_seconds",
    "jobs_per_gpu",
    "interference",
    *BOUNDS,
    "nodes_text",
    *OF_SLURM,
)
EXECUTORS = {
    ExecutorKind.SIMULATED: "simulated: jobs of the catalog",
    ExecutorKind.LOCAL: "local: commands on the worker's machine",
    ExecutorKind.SLURM: "slurm: commands on the nodes of Slurm",
}
# Field of a refusal -> field of the form.
PLACES = {name: name for name in FIELDS} | {"nodes": "shape", "executor_parameters": "shared_dir"}
READ_NODES = {"text": "nodes_text", "gpu_types": "nodes_text"}
_EMPTY_NAME = "Give it a name."


def cards() -> html.Div:
    stores = [dcc.Store(id="admin-new-cluster-key", data=uuid4().hex)]
    return html.Div([card("New cluster", _form(), mb=12), *stores], id="admin-new-cluster-card")


def _form() -> html.Div:
    slurm = [
        dmc.TextInput(
            id=field_id("shared_dir"),
            label="Folder that all nodes see",
            value="",
            withAsterisk=True,
        ),
        dmc.TextInput(
            id=field_id("partition"), label="Partition", value="", placeholder="Slurm's default"
        ),
    ]
    return html.Div(
        [
            html.Div(id="admin-new-cluster-problem"),
            html.Div(_first_row(), className="form-row roomy"),
            html.Div(slurm, id="admin-new-cluster-slurm", className="form-row wide"),
            html.Div(nodes_fields(), id="admin-new-cluster-nodes", className="spaced"),
            html.Div(id="admin-new-cluster-hint", className="hint"),
            dmc.Group([dmc.Button("Make cluster", id="admin-new-cluster-make", n_clicks=0)], mt=4),
        ],
        className="form-stack",
        **submits("admin-new-cluster-make"),
    )


def _first_row() -> list[Component]:
    executors = [{"value": kind.value, "label": words} for kind, words in EXECUTORS.items()]
    shape = dmc.TextInput(
        id=field_id("shape"),
        label="Nodes by GPU type",
        placeholder="t4=6x4,a100=2x8",
        value="",
    )
    return [
        dmc.TextInput(id=field_id("name"), label="Name", value="", withAsterisk=True),
        dmc.Select(
            id=field_id("executor"),
            label="Executor",
            data=executors,
            value=ExecutorKind.SIMULATED.value,
            allowDeselect=False,
        ),
        html.Div(shape, id="admin-new-cluster-shape-box"),
        dmc.Select(
            id=field_id("policy"), label="Policy", data=["sia"], value="sia", allowDeselect=False
        ),
        dmc.Select(
            id=field_id("placer"),
            label="Placer",
            data=[],
            placeholder="the one that suits the policy",
            clearable=True,
        ),
        dmc.NumberInput(
            id=field_id("round_seconds"),
            label="Round every (s)",
            value="",
            placeholder="the policy's own",
            clampBehavior="none",
        ),
        *_sharing_fields(),
        *_bound_fields(),
    ]


def _sharing_fields() -> list[Component]:
    return [
        dmc.NumberInput(
            id=field_id("jobs_per_gpu"),
            label="Jobs per GPU",
            value="",
            placeholder="1; 2 to share",
            allowDecimal=False,
            clampBehavior="none",
        ),
        dmc.TextInput(
            id=field_id("interference"),
            label="Slowdown on a shared GPU",
            placeholder="1.25, or measurements",
            value="",
        ),
    ]


def _bound_fields() -> list[Component]:
    """Fields of the least stay and of the most moves an hour."""
    return [
        dmc.NumberInput(
            id=field_id(name),
            label=label,
            value="",
            placeholder="no bound",
            allowDecimal=name != "most_moves_per_hour",
            clampBehavior="none",
        )
        for name, label in BOUNDS.items()
    ]


def register(app: Dash, api: Api) -> None:
    register_nodes(app, api)
    answer(
        app,
        partial(offer, api),
        output={
            "policies": Output(field_id("policy"), "data"),
            "placers": Output(field_id("placer"), "data"),
            "card": Output("admin-new-cluster-card", "style"),
            "problem": Output("admin-new-cluster-problem", "children", allow_duplicate=True),
        },
        inputs={"_key": Input("admin-new-cluster-key", "data")},
        prevent_initial_call="initial_duplicate",
    )
    answer(
        app,
        fit_executor,
        output={
            "shape": Output("admin-new-cluster-shape-box", "style"),
            "nodes": Output("admin-new-cluster-nodes", "style"),
            "slurm": Output("admin-new-cluster-slurm", "style"),
            "hint": Output("admin-new-cluster-hint", "children"),
        },
        inputs={"executor": Input(field_id("executor"), "value")},
    )
    answer(
        app,
        partial(make_cluster, api),
        output={
            "problem": Output("admin-new-cluster-problem", "children"),
            "errors": {name: Output(field_id(name), "error") for name in FIELDS},
            "name": Output(field_id("name"), "value"),
            "nodes_text": Output(field_id("nodes_text"), "value", allow_duplicate=True),
            "key": Output("admin-new-cluster-key", "data", allow_duplicate=True),
            "changed": Output("admin-clusters-changed", "data", allow_duplicate=True),
            "notices": NOTICES,
        },
        inputs={"clicks": Input("admin-new-cluster-make", "n_clicks")},
        state={
            "values": {name: State(field_id(name), "value") for name in FIELDS},
            "types": State(TYPES_ID, "value"),
            "key": State("admin-new-cluster-key", "data"),
        },
        prevent_initial_call=True,
        running=[(Output("admin-new-cluster-make", "loading"), True, False)],
    )


async def offer(api: Api, *, _key: str) -> Changes:
    """Offer the policies and placers there are, to who may make clusters."""
    try:
        async with api.visitor() as maat:
            me, policies, placers = await asyncio.gather(
                maat.me(), maat.send(calls.policies()), maat.send(calls.placers())
            )
    except Failure as error:
        return {"card": {"display": ""}, "problem": error_state(error)}
    may = MAY_CHANGE in me["permissions"]
    return {
        "policies": [{"value": o["name"], "label": o["title"]} for o in policies["items"]],
        "placers": [{"value": o["name"], "label": o["title"]} for o in placers["items"]],
        "card": {"display": "" if may else "none"},
    }


async def fit_executor(*, executor: str) -> Changes:
    """Show the fields of this executor, and say where its nodes come from."""
    is_slurm = executor == ExecutorKind.SLURM
    hints = {
        ExecutorKind.SLURM.value: "Slurm says which nodes there are.",
        ExecutorKind.LOCAL.value: "Without nodes, the GPUs of the worker's machine; or slots that "
        "are no GPUs, such as cpu=1x4.",
    }
    return {
        "shape": HIDDEN if is_slurm else SHOWN,
        "nodes": SHOWN if executor == ExecutorKind.SIMULATED else HIDDEN,
        "slurm": SHOWN if is_slurm else HIDDEN,
        "hint": hints.get(executor, "Its jobs are of the catalog's models, and run by themselves."),
    }


async def make_cluster(
    api: Api, *, clicks: int | None, values: FormValues, types: str, key: str
) -> Changes:
    """Make the cluster, or show what is wrong beside its field."""
    if not clicks:
        return NOTHING
    wrong = unfinished(values)
    if wrong:
        return {"errors": _beside(wrong), "problem": None}
    try:
        async with api.visitor() as maat:
            body = body_of(values)
            if takes_nodes(values):
                found = await maat.send(calls.import_cluster(nodes_body(values, types)))
                body = {name: each for name, each in body.items() if name != "shape"}
                body["nodes"] = found["nodes"]
            made = await maat.create_cluster(body, idempotency_key=key)
    except Failure as error:
        beside, above = errors_by_field(
            error, lambda found: (PLACES | READ_NODES).get(found.field), empty_name=_EMPTY_NAME
        )
        return {"errors": _beside(beside), "problem": above, "key": uuid4().hex}
    return {
        "problem": None,
        "errors": _beside({}),
        "name": "",
        "nodes_text": "",
        "key": uuid4().hex,
        "changed": clicks,
        "notices": notice("Cluster made", _made(made)),
    }


def _made(cluster: ClusterOut) -> str:
    name = isolated(cluster["name"])
    made = f"{name} makes its first round now, by {cluster['policy']} with {cluster['placer']}."
    return " ".join([made, *cluster["notes"]])


def unfinished(values: FormValues) -> dict[str, str]:
    """Return what the fields themselves can see to be wrong, by field."""
    numbers = ("round_seconds", "jobs_per_gpu", *BOUNDS)
    found = {name: wrong_number(ClusterBody, name, values[name]) for name in numbers}
    if not values["name"]:
        found["name"] = _EMPTY_NAME
    executor = values["executor"]
    if executor == ExecutorKind.SIMULATED and not (values["shape"] or values["nodes_text"]):
        found["shape"] = "Give its nodes, such as t4=6x4,a100=2x8; or paste them below."
    if executor == ExecutorKind.SLURM and not values["shared_dir"]:
        found["shared_dir"] = "Name a folder that the service and all nodes see."
    return {name: words for name, words in found.items() if words}


def body_of(values: FormValues) -> RawBody:
    """The form as the API's body."""
    is_slurm = values["executor"] == ExecutorKind.SLURM
    body: RawBody = {
        "name": values["name"],
        "executor": values["executor"],
        "policy": values["policy"],
        "shape": "" if is_slurm else values["shape"],
        "round_seconds": values["round_seconds"],
        "jobs_per_gpu": values["jobs_per_gpu"],
        "interference": number_or_name(values["interference"]),
        "placer": values["placer"],
        **{name: values[name] for name in BOUNDS},
    }
    body = {name: value for name, value in body.items() if value not in ("", None)}
    parameters = {name: values[name] for name in OF_SLURM if values[name]}
    return body | ({"executor_parameters": parameters} if is_slurm else {})


def _beside(errors: Mapping[str, str]) -> dict[str, str]:
    return {name: errors.get(name, "") for name in FIELDS}
