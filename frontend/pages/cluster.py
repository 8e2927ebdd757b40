"""The cluster, GPU by GPU: which job holds which, what is free together, drained nodes."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import NotRequired, TypedDict

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html
from dash.development.base_component import Component

from frontend.addresses import add_page, anything, counting
from frontend.api import Api, Failure
from frontend.callbacks import NOTHING, NOTICES, Changes, answer
from frontend.components import past_rounds
from frontend.components.cards import card, empty_state, error_state, page_title, scrolls, skeleton
from frontend.components.cluster_map import (
    cluster_map,
    drawing_of,
    map_search,
    nodes_grid,
    register_cluster_map,
    register_map_search,
)
from frontend.components.drain_dialog import (
    DRAINED,
    asked_first,
    drain_dialog,
    drain_outputs,
    register_drain,
)
from frontend.components.grid import placeholder_id
from frontend.components.next_step import CLUSTERS, NO_CLUSTER_YET, leads, without_cluster
from frontend.components.notices import notice, refusal
from frontend.components.replay import replay_link
from frontend.components.states import gpu_chip
from frontend.figures.cluster_map import Known, message
from frontend.formatting import count, gpus, number, plural
from frontend.loading import by_part, failed_map, loaded, may, nothing
from frontend.pages.reservations import (
    MAY_RESERVE,
    register_reservations,
    reservation_dialog,
    reservations_card,
    reservations_table,
    reserve_button,
)
from frontend.pages.what_if import TAKES, register_what_if, what_if_card
from frontend.routing import QueryValue, click_target, path_to, query_value
from frontend.shell import NO_CLUSTER
from frontend.theme import gpu_order
from maat.api.clusters import ClusterOut, ClusterStateOut
from maat.client import calls
from maat.vocabulary import ExecutorKind

MOST_ROUNDS = 999_999_999
NO_NODE = "No node yet"
_ADD_NODES = "Jobs get GPUs as soon as it has some."
_WAITS_FOR_SLURM = (
    "Slurm's nodes appear within seconds. If none does, see whether the worker runs, and whether "
    "sinfo lists nodes with GPUs there; the worker's log says what it was answered."
)
_WAITS_FOR_GPUS = (
    "This machine's GPUs appear within seconds. If none does, see whether the worker runs, and "
    "what nvidia-smi -L says on its machine. GPUs in MIG mode are left out."
)
NO_CLUSTER_HINT = "It shows here, GPU by GPU."
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


def layout(
    round: QueryValue = None,
    q: QueryValue = None,
    drain: QueryValue = None,
    add: QueryValue = None,
    policy: QueryValue = None,
    **_query: object,
) -> html.Div:
    drawn = cluster_map(
        "cluster",
        height="max(420px, calc(100vh - 248px))",
        smallest_pixels=10,
        search=query_value(q),
    )
    free = scrolls("cluster-free", skeleton(100), label="Free GPUs")
    return html.Div(
        [
            page_title(
                "Cluster",
                replay_link(),
                html.Div(id="cluster-actions"),
                note=html.Span(id="cluster-note", className="caption"),
            ),
            html.Div(id="cluster-asked", className="address-note"),
            html.Div(id="cluster-no-round"),
            html.Div(id="cluster-verdict", className="verdict sentence", role="status"),
            html.Div(
                [
                    card(
                        "Who holds which GPU",
                        [drawn, past_rounds.stepper(query_value(round))],
                        aside=map_search("cluster", query_value(q)),
                        className="span-8",
                    ),
                    html.Div(
                        [card("Free GPUs", free), reservations_card()],
                        className="span-4 form-stack level",
                    ),
                    what_if_card(drain, add, policy),
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
        takes={"node": anything, "q": anything, "round": counting("round", MOST_ROUNDS), **TAKES},
    )
    register_reservations(app, api)
    register_what_if(app, api)
    register_drain(app, api, "cluster")
    register_cluster_map(app, "cluster", grid_id="cluster-nodes")
    register_map_search(app, "cluster")
    past_rounds.register(app)
    answer(
        app,
        partial(show, api),
        output={
            "drawing": Output("cluster-drawing", "data"),
            "note": Output("cluster-note", "children"),
            "verdict": Output("cluster-verdict", "children"),
            "free": Output("cluster-free", "children"),
            "actions": Output("cluster-actions", "children"),
            "reserved": Output("cluster-reserved", "children"),
            "reserve": Output("cluster-reserve", "children"),
            "told": Output(placeholder_id("cluster-nodes"), "children"),
            "rounds": past_rounds.BOUNDS,
            "when": past_rounds.WHEN,
            "no_round": Output("cluster-no-round", "children"),
        },
        inputs={
            "past": past_rounds.CHOSEN,
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
    past: int | None,
    known: Known | None,
) -> Changes:
    """Show the cluster as it stands, or as the past round `past` left it."""
    if not cluster_id or not scheme:
        return NOTHING
    if cluster_id == NO_CLUSTER:
        return _without_cluster()
    async with api.visitor() as maat:
        cluster, seen, reserved, me = await asyncio.gather(
            loaded(maat.send(calls.cluster(cluster_id))),
            loaded(past_rounds.state_of(maat, cluster_id, past)),
            loaded(maat.reservations(cluster_id)),
            loaded(maat.send(calls.me())),
        )
    may_reserve = may(me, MAY_RESERVE)
    return by_part(
        {
            "drawing": lambda: drawing_of(
                seen().state["gpus"],
                known,
                scheme=scheme,
                faults=seen().state["faults"],
                none=(NO_NODE, without_nodes(cluster.answer)),
            ),
            "note": lambda: note_of(cluster()),
            "verdict": lambda: verdict_of(seen().state),
            "rounds": lambda: past_rounds.bounds_of(cluster()),
            "when": lambda: past_rounds.when_of(seen().state, None if seen().absent else past),
            "no_round": lambda: seen().absent,
            "free": lambda: free_table(cluster.answer, seen().state),
            "actions": lambda: _pause_button(cluster()),
            "reserved": lambda: reservations_table(reserved(), may=may_reserve),
            "reserve": lambda: reserve_button(may_reserve),
            "told": lambda: None if seen().state["gpus"] else _no_node(cluster.answer),
        },
        failed={
            "drawing": failed_map,
            "note": lambda _: "",
            "free": error_state,
            "actions": nothing,
            "reserved": error_state,
            "told": error_state,
        },
    )


def _without_cluster() -> Changes:
    empty = without_cluster(NO_CLUSTER_HINT)
    return {
        "drawing": message(NO_CLUSTER_YET, NO_CLUSTER_HINT, way=("Make a cluster", CLUSTERS)),
        "note": "",
        "verdict": "",
        "free": empty,
        "actions": None,
        "reserved": "",
        "reserve": None,
        "told": empty,
    }


def verdict_of(state: ClusterStateOut) -> str:
    """Say how many GPUs are held, where most are free together, and what is out of order."""
    if not state["gpus"]:
        return ""
    held = sum(cell["held"] for cell in state["gpus"])
    told = f"{count(held)} of {plural(len(state['gpus']), 'GPU')} held"
    free, together = sum(state["free_by_type"].values()), state["largest_free_on_one_node"]
    if free:
        best = max(gpu_order(together), key=lambda name: together[name])
        told += f", {count(free)} free: at most {gpus(together[best], best)} together"
    out = len(state["faults"])
    return f"{told}. {plural(out, 'node')} out of order." if out else f"{told}."


def note_of(cluster: ClusterOut) -> str:
    """What decides on the cluster, how often, and how fast its clock runs or what runs its jobs."""
    unit = "second" if cluster["speed"] == 1 else "seconds"
    pace = f"{number(cluster['speed'])} cluster {unit} per second"
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


def without_nodes(cluster: ClusterOut | None) -> str:
    """Why a cluster may have no node, and what to do. `cluster`: None if it could not be loaded."""
    if cluster is None:
        return _ADD_NODES
    if cluster["executor"] == ExecutorKind.SLURM:
        return _WAITS_FOR_SLURM
    found = cluster["executor_parameters"].get("gpus") == "found"
    return _WAITS_FOR_GPUS if found else _ADD_NODES


def _no_node(cluster: ClusterOut | None) -> Component:
    named = {} if cluster is None else {"cluster": cluster["id"]}
    way = leads("Add nodes", path_to("/admin", **named, tab="clusters"))
    return empty_state(NO_NODE, without_nodes(cluster), action=way)


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


def free_table(cluster: ClusterOut | None, state: ClusterStateOut) -> Component:
    """Return free GPUs per type, and the most that are free together on one node."""
    free, together = state["free_by_type"], state["largest_free_on_one_node"]
    if not free:
        return _no_node(cluster)
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
