"""The cluster, GPU by GPU: who holds what, what is free together, and nodes taken out of service."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html, no_update

from frontend.addresses import add_page, anything
from frontend.api import Api, Failure, said
from frontend.components.cards import card, empty_state, error_state, page_title, scrolls, skeleton
from frontend.components.cluster_map import (
    cluster_map,
    drawing_of,
    nodes_grid,
    register_cluster_map,
)
from frontend.components.grid import told
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
from frontend.routing import presses
from frontend.shell import NO_CLUSTER
from frontend.theme import gpu_order
from maat.client import calls
from maat.client.calls import Call

ADD_NODES = "Add nodes: POST /api/v1/clusters/{id}/nodes."


def layout(**_query: Any) -> html.Div:
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
                    card(
                        "Who holds which GPU",
                        cluster_map(
                            "cluster", height="max(420px, calc(100vh - 192px))", smallest_pixels=10
                        ),
                        className="span-8",
                    ),
                    html.Div(
                        [
                            card(
                                "Free now", scrolls("cluster-free", skeleton(100), label="Free now")
                            ),
                            reservations_card(),
                        ],
                        className="span-4 form-stack",
                    ),
                    card("Nodes", nodes_grid("cluster-nodes", height="420px"), className="span-12"),
                ],
                className="columns",
            ),
            reservation_dialog(),
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

    register_cluster_map(app, "cluster", grid_id="cluster-nodes")

    @app.callback(
        Output("cluster-drawing", "data"),
        Output("cluster-note", "children"),
        Output("cluster-free", "children"),
        Output("cluster-actions", "children"),
        Output("cluster-reserved", "children"),
        Output("cluster-reserve", "children"),
        Output(told("cluster-nodes"), "children"),
        Input("live", "data"),
        Input("cluster-select", "value"),
        Input("scheme", "data"),
        Input("cluster-acted", "data"),
        State("cluster-known", "data"),
    )
    async def show(
        _live: Any, cluster_id: str | None, scheme: str | None, _acted: Any, known: Known | None
    ) -> tuple[Any, ...]:
        if not cluster_id or not scheme:
            return (no_update,) * 7
        if cluster_id == NO_CLUSTER:
            said_so = ("No cluster yet", "Create one with POST /api/v1/clusters.")
            return (
                message(*said_so),
                "",
                empty_state(*said_so),
                None,
                "",
                None,
                empty_state(*said_so),
            )
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
            return (
                message(*said(error), failed=True),
                "",
                failed,
                no_update,
                failed,
                no_update,
                failed,
            )
        may = MAY_RESERVE in me["permissions"]
        pace = (
            "paused"
            if cluster["paused"]
            else f"{number(cluster['speed'])} cluster seconds per second"
        )
        note = f"{cluster['policy']} with {cluster['placer']}, a round every {number(cluster['round_seconds'])} s, {pace}"
        action = "resume" if cluster["paused"] else "pause"
        button = dmc.Button(
            f"{action.capitalize()} cluster",
            variant="default",
            size="xs",
            **presses("cluster-pressed", action=action),
        )
        return (
            drawing_of(state["gpus"], known, scheme=scheme),
            note,
            free_table(state),
            button,
            reservations_table(reserved, may=may),
            reserve_button(may),
            None if state["gpus"] else empty_state("No node", ADD_NODES),
        )

    @app.callback(
        Output("cluster-acted", "data"),
        Output("notices", "sendNotifications", allow_duplicate=True),
        Input("cluster-pressed", "data"),
        State("cluster-select", "value"),
        prevent_initial_call=True,
    )
    async def act(pressed: dict[str, Any] | None, cluster_id: str) -> tuple[Any, Any]:
        if not pressed:
            return no_update, no_update
        action, node = pressed["action"], pressed.get("node")
        call: Call[Any] = (
            calls.act_on_node(cluster_id, node, action)
            if node
            else calls.act_on_cluster(cluster_id, action)
        )
        try:
            async with api.visitor() as maat:
                await maat.send(call)
        except Failure as error:
            return no_update, refusal(error)
        done = {
            "drain": "Node drained: its jobs move at the next round",
            "restore": "Node back in service",
            "pause": "Cluster paused",
            "resume": "Cluster runs on",
        }
        return pressed["at"], notice(done[action])


def free_table(state: Mapping[str, Any]) -> Any:
    """Free GPUs per type, and the most that are free together on one node: what could be placed at once."""
    free, together = state["free_by_type"], state["largest_free_on_one_node"]
    if not free:
        return empty_state("No node", ADD_NODES)
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
