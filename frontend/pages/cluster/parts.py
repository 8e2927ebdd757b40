"""Parts of the cluster's page: free GPUs, and what stands there without a node."""

from __future__ import annotations

from collections.abc import Mapping

import dash_mantine_components as dmc
from dash import html
from dash.development.base_component import Component

from frontend.attributes import click_target
from frontend.components.cards import empty_state
from frontend.components.next_step import leads
from frontend.components.states import gpu_chip
from frontend.pages.cluster.summary import NO_NODE, without_nodes
from frontend.routing import path_to
from maat.api.clusters import ClusterOut, ClusterStateOut
from maat.colours import gpu_order


def free_table(
    cluster: ClusterOut | None, state: ClusterStateOut, reserved: Mapping[str, int]
) -> Component:
    """Return free GPUs per type, the most that are free together on one node, and the reserved.

    `reserved`: how many are reserved at present, by type; the holder's jobs may be on them.
    """
    free, together = state["free_by_type"], state["largest_free_on_one_node"]
    if not free:
        return no_node(cluster)
    rows = [
        html.Tr(
            [
                html.Td(gpu_chip(name)),
                html.Td(str(free[name]), className="number"),
                html.Td(str(together.get(name, 0)), className="number"),
                *([html.Td(str(reserved.get(name, 0)), className="number")] if reserved else []),
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
                *([html.Th("Reserved", className="number")] if reserved else []),
            ]
        )
    )
    return html.Table([head, html.Tbody(rows)], className="plain-table")


def no_node(cluster: ClusterOut | None) -> Component:
    named = {} if cluster is None else {"cluster": cluster["id"]}
    way = leads("Add nodes", path_to("/admin", **named, tab="clusters"))
    return empty_state(NO_NODE, without_nodes(cluster), action=way)


def pause_button(cluster: ClusterOut) -> dmc.Button:
    action = "resume" if cluster["paused"] else "pause"
    return dmc.Button(
        f"{action.capitalize()} cluster",
        variant="default",
        size="xs",
        **click_target("cluster-pressed", action=action),
    )
