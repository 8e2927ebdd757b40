"""The cluster, GPU by GPU: which job holds which, what is free together, drained nodes."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import NotRequired, TypedDict

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html
from dash.development.base_component import Component

from frontend.addresses import add_page, anything
from frontend.api import Api, Failure, error_message
from frontend.callbacks import NOTHING, NOTICES, Changes, answer
from frontend.components.cards import card, empty_state, error_state, page_title, scrolls, skeleton
from frontend.components.cluster_map import (
    cluster_map,
    drawing_of,
    nodes_grid,
    register_cluster_map,
)
from frontend.components.drain_dialog import (
    DRAINED,
    asked_first,
    drain_dialog,
    drain_outputs,
    register_drain,
)
from frontend.components.grid import placeholder_id
from frontend.components.notices import notice, refusal
from frontend.components.states import gpu_chip
from frontend.figures.cluster_map import Known, message
from frontend.formatting import number
from frontend.pages.reservations import (
    MAY_RESERVE,
    register_reservations,
    reservation_dialog,
    reservations_card,
    reservations_table,
    reserve_button,
)
from frontend.routing import click_target
from frontend.shell import NO_CLUSTER
from frontend.theme import gpu_order
from maat.api.clusters import ClusterOut, ClusterStateOut
from maat.client import calls
from maat.vocabulary import ExecutorKind

NO_NODE = "No node yet"
_ADD_NODES = "Add nodes on the page Admin, or with maat add-nodes."
_WAITS_FOR_SLURM = (
    "Slurm's nodes appear within seconds. If none does, see whether the worker runs, and whether "
    "sinfo lists nodes with GPUs there; the worker's log says what it was answered."
)
_WAITS_FOR_GPUS = (
    "This machine's GPUs appear within seconds. If none does, see whether the worker runs, and "
    "what nvidia-smi -L says on its machine. GPUs in MIG mode are left out."
)
NO_CLUSTER_YET = ("No cluster yet", "Make one on the page Admin, or with maat create-cluster.")
DONE = {
    "drain": DRAINED,
    "restore": "Node back in service",
    "pause": "Cluster paused",
    "resume": "Cluster runs on",
}


class Pressed(TypedDict):
    """A press of a button that acts on the cluster, or on one of its nodes."""

    at: int
    action: str
    node: NotRequired[str]


def layout(**_query: object) -> html.Div:
    gpus = cluster_map("cluster", height="max(420px, calc(100vh - 192px))", smallest_pixels=10)
    free = scrolls("cluster-free", skeleton(100), label="Free now")
    return html.Div(
        [
            page_title(
                "Cluster",
                html.Div(id="cluster-actions"),
                note=html.Span(id="cluster-note", className="caption"),
            ),
            html.Div(id="cluster-asked", className="address-note"),
            html.Div(
                [
                    card("Who holds which GPU", gpus, className="span-8"),
                    html.Div(
                        [card("Free now", free), reservations_card()],
                        className="span-4 form-stack",
                    ),
                    card("Nodes", nodes_grid("cluster-nodes", height="420px"), className="span-12"),
                ],
                className="columns",
            ),
            reservation_dialog(),
            drain_dialog("cluster"),
            dcc.Store(id="cluster-pressed"),
            dcc.Store(id="cluster-acted"),
        ]
    )


def register(app: Dash, api: Api) -> None:
    add_page(
        __name__,
        path="/cluster",
        name="Cluster",
        title="Cluster",
        order=1,
        layout=layout,
        takes={"node": anything},
    )
    register_reservations(app, api)
    register_drain(app, api, "cluster")
    register_cluster_map(app, "cluster", grid_id="cluster-nodes")
    answer(
        app,
        partial(show, api),
        output={
            "drawing": Output("cluster-drawing", "data"),
            "note": Output("cluster-note", "children"),
            "free": Output("cluster-free", "children"),
            "actions": Output("cluster-actions", "children"),
            "reserved": Output("cluster-reserved", "children"),
            "reserve": Output("cluster-reserve", "children"),
            "told": Output(placeholder_id("cluster-nodes"), "children"),
        },
        inputs={
            "_live": Input("live", "data"),
            "cluster_id": Input("cluster-select", "value"),
            "scheme": Input("scheme", "data"),
            "_acted": Input("cluster-acted", "data"),
        },
        state={"known": State("cluster-known", "data")},
    )
    answer(
        app,
        partial(act, api),
        output={
            "acted": Output("cluster-acted", "data"),
            "notices": NOTICES,
            **drain_outputs("cluster"),
        },
        inputs={"pressed": Input("cluster-pressed", "data")},
        state={"cluster_id": State("cluster-select", "value")},
        prevent_initial_call=True,
    )


async def show(
    api: Api,
    *,
    _live: object,
    cluster_id: str | None,
    scheme: str | None,
    _acted: object,
    known: Known | None,
) -> Changes:
    if not cluster_id or not scheme:
        return NOTHING
    if cluster_id == NO_CLUSTER:
        return _without_cluster()
    try:
        async with api.visitor() as maat:
            cluster, state, reserved, me = await asyncio.gather(
                maat.send(calls.cluster(cluster_id)),
                maat.send(calls.cluster_state(cluster_id)),
                maat.reservations(cluster_id),
                maat.send(calls.me()),
            )
    except Failure as error:
        failed = error_state(error)
        drawing = message(*error_message(error), failed=True)
        return {"drawing": drawing, "note": "", "free": failed, "reserved": failed, "told": failed}
    may = MAY_RESERVE in me["permissions"]
    return {
        "drawing": drawing_of(
            state["gpus"],
            known,
            scheme=scheme,
            faults=state["faults"],
            none=(NO_NODE, without_nodes(cluster)),
        ),
        "note": note_of(cluster),
        "free": free_table(cluster, state),
        "actions": _pause_button(cluster),
        "reserved": reservations_table(reserved, may=may),
        "reserve": reserve_button(may),
        "told": None if state["gpus"] else empty_state(NO_NODE, without_nodes(cluster)),
    }


def _without_cluster() -> Changes:
    empty = empty_state(*NO_CLUSTER_YET)
    return {
        "drawing": message(*NO_CLUSTER_YET),
        "note": "",
        "free": empty,
        "actions": None,
        "reserved": "",
        "reserve": None,
        "told": empty,
    }


def note_of(cluster: ClusterOut) -> str:
    """What decides on the cluster, how often, and how fast its clock runs or what runs its jobs."""
    pace = f"{number(cluster['speed'])} cluster seconds per second"
    if cluster["executor"] != ExecutorKind.SIMULATED:
        pace = f"commands run on {_where(cluster)}"
    if cluster["fault"]:
        pace = f"{pace}; its engine does not answer: {cluster['fault']}"
    return (
        f"{cluster['policy']} with {cluster['placer']}, "
        f"a round every {number(cluster['round_seconds'])} s, "
        f"{'paused' if cluster['paused'] else pace}"
    )


def _where(cluster: ClusterOut) -> str:
    """What a cluster that runs commands runs them on."""
    given = cluster["executor_parameters"]
    if cluster["executor"] == ExecutorKind.LOCAL:
        found = given.get("gpus") == "found"
        return "the GPUs of this machine" if found else "slots of this machine, which are no GPUs"
    partition = given.get("partition")
    return f"partition {partition} of Slurm" if partition else "Slurm"


def without_nodes(cluster: ClusterOut) -> str:
    """Why a cluster may have no node, and what to do."""
    if cluster["executor"] == ExecutorKind.SLURM:
        return _WAITS_FOR_SLURM
    found = cluster["executor_parameters"].get("gpus") == "found"
    return _WAITS_FOR_GPUS if found else _ADD_NODES


def _pause_button(cluster: ClusterOut) -> dmc.Button:
    action = "resume" if cluster["paused"] else "pause"
    return dmc.Button(
        f"{action.capitalize()} cluster",
        variant="default",
        size="xs",
        **click_target("cluster-pressed", action=action),
    )


async def act(api: Api, *, pressed: Pressed | None, cluster_id: str) -> Changes:
    """Pause or resume the cluster, drain or restore one of its nodes.

    Before jobs are moved, say which.
    """
    if not pressed:
        return NOTHING
    action, node = pressed["action"], pressed.get("node")
    try:
        async with api.visitor() as maat:
            if node and action == "drain":
                effect = await maat.try_drain(cluster_id, node)
                if effect["jobs"]:
                    return asked_first(effect, prefix="cluster")
            if node:
                await maat.send(calls.act_on_node(cluster_id, node, action))
            else:
                await maat.send(calls.act_on_cluster(cluster_id, action))
    except Failure as error:
        return {"notices": refusal(error)}
    return {"acted": pressed["at"], "notices": notice(DONE[action])}


def free_table(cluster: ClusterOut, state: ClusterStateOut) -> Component:
    """Return free GPUs per type, and the most that are free together on one node."""
    free, together = state["free_by_type"], state["largest_free_on_one_node"]
    if not free:
        return empty_state(NO_NODE, without_nodes(cluster))
    rows = [
        html.Tr(
            [
                html.Td(gpu_chip(name)),
                html.Td(str(free[name]), className="number"),
                html.Td(str(together.get(name, 0)), className="number"),
            ]
        )
        for name in gpu_order(free)
    ]
    head = html.Thead(
        html.Tr(
            [
                html.Th("GPU type"),
                html.Th("Free (GPUs)", className="number"),
                html.Th("Most on one node", className="number"),
            ]
        )
    )
    return html.Table([head, html.Tbody(rows)], className="plain-table")
