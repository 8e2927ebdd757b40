"""What fills the cluster's page, and its buttons that act on the cluster and its nodes."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import NotRequired, TypedDict

from dash import Dash, Input, Output, State

from frontend.api import Api, Failure
from frontend.callbacks import NOTHING, NOTICES, Changes, answer
from frontend.components import past_rounds
from frontend.components.cards import error_state
from frontend.components.cluster_map import drawing_of, register_cluster_map, register_map_search
from frontend.components.drain_dialog import DRAINED, asked_first, drain_outputs, register_drain
from frontend.components.grid import placeholder_id
from frontend.components.next_step import CLUSTERS, NO_CLUSTER_YET, without_cluster
from frontend.components.notices import notice, refusal
from frontend.figures.cluster_map import Known, message
from frontend.loading import by_part, failed_map, loaded, may, nothing
from frontend.pages.cluster.parts import free_table, no_node, pause_button
from frontend.pages.cluster.reservations import (
    reservations_table,
    reserve_button,
    reserved_now,
)
from frontend.pages.cluster.summary import NO_NODE, note_of, verdict_of, without_nodes
from frontend.shell import NO_CLUSTER
from maat.client import calls

NO_CLUSTER_HINT = "It shows here, GPU by GPU."
MAY_CHANGE = "clusters:write"
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


def register(app: Dash, api: Api) -> None:
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
            "nodes": Output("cluster-nodes-card", "className"),
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
    may_change = may(me, MAY_CHANGE)
    held_back = reserved_now([] if past else reserved.answer or [])
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
            "verdict": lambda: verdict_of(seen().state, held_back),
            "rounds": lambda: past_rounds.bounds_of(cluster()),
            "when": lambda: past_rounds.when_of(seen().state, None if seen().absent else past),
            "no_round": lambda: seen().absent,
            "free": lambda: free_table(cluster.answer, seen().state, held_back),
            "actions": lambda: pause_button(cluster()) if may_change else None,
            "nodes": lambda: "span-12" if may_change else "span-12 read-only",
            "reserved": lambda: reservations_table(reserved(), may=may_change),
            "reserve": lambda: reserve_button(may_change),
            "told": lambda: None if seen().state["gpus"] else no_node(cluster.answer),
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
        "nodes": "span-12 read-only",
        "told": empty,
    }


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
