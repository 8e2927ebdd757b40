"""The tables of clusters and of nodes: one row each, with the buttons that act on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import dash_mantine_components as dmc
from dash import dcc, html
from dash.development.base_component import Component

from frontend.attributes import aria, click_target
from frontend.components.cards import empty_state
from frontend.components.names import LONGEST_SHOWN, cut_name
from frontend.components.next_step import goes_to
from frontend.components.states import gpu_chip
from frontend.formatting import ABSENT, as_typed, count, number, plural
from frontend.routing import path_to
from maat.api.clusters import ClusterOut, ClusterStateOut, NodeOut

SHOWN_NODES = 100
_JOBS_SHOWN = 2
_EXECUTORS = {
    "simulated": "simulated",
    "local": "commands, on this machine",
    "slurm": "commands, by Slurm",
}


def head(words: Sequence[str], numbers: Sequence[str] = ()) -> html.Thead:
    """Name the columns; those of numbers stand at the right, as the numbers do."""
    cells = [html.Th(word, className="number" if word in numbers else None) for word in words]
    return html.Thead(html.Tr(cells))


def numeric(value: int | float | str) -> html.Td:
    return html.Td(str(value), className="number")


def cluster_table(clusters: Sequence[tuple[ClusterOut, int | None]], *, may: bool) -> Component:
    """The clusters, each with how many of its jobs have not ended; None where it is not known."""
    if not clusters:
        return empty_state(
            "No cluster yet",
            "Jobs need one to run on.",
            action=goes_to("Make a cluster", "admin-new-cluster-name"),
        )
    numbers = ("Nodes", "GPUs", "Live jobs", "Round (s)")
    names = ("Name", "Executor", "Policy", "Placer", *numbers, "State", "")
    rows = [_cluster_row(cluster, living, may=may) for cluster, living in clusters]
    return html.Table([head(names, numbers), html.Tbody(rows)], className="plain-table")


def _bound(value: float | None) -> str:
    return "" if value is None else repr(value)


def _declared(interference: str | float | None) -> str:
    return as_typed(interference) if isinstance(interference, int | float) else interference or ""


def _cluster_row(cluster: ClusterOut, living: int | None, *, may: bool) -> html.Tr:
    here = path_to("/admin", cluster=cluster["id"], tab="clusters")
    change = dmc.Button(
        "Change",
        variant="subtle",
        size="compact-xs",
        **click_target(
            "admin-cluster-pressed",
            cluster=cluster["id"],
            name=cluster["name"],
            round_seconds=repr(cluster["round_seconds"]),
            speed=repr(cluster["speed"]),
            keep_rounds=str(cluster["keep_rounds"]),
            jobs_per_gpu=str(cluster["jobs_per_gpu"]),
            interference=_declared(cluster["interference"]),
            least_stay_seconds=_bound(cluster["least_stay_seconds"]),
            most_moves_per_hour=_bound(cluster["most_moves_per_hour"]),
            paused="yes" if cluster["paused"] else "",
            version=str(cluster["version"]),
        ),
        **aria(f"Change {cluster['name']}"),
    )
    return html.Tr(
        [
            html.Td(_name_link(cluster["name"], here)),
            html.Td(_EXECUTORS.get(cluster["executor"], cluster["executor"])),
            html.Td(cluster["policy"]),
            html.Td(cluster["placer"]),
            numeric(count(cluster["node_count"])),
            numeric(count(cluster["gpu_count"])),
            numeric(ABSENT if living is None else count(living)),
            numeric(number(cluster["round_seconds"])),
            html.Td(cluster_state_words(cluster)),
            html.Td(change if may else ""),
        ]
    )


def _name_link(name: str, href: str) -> dcc.Link:
    """A name that leads somewhere; a long one is cut until one points at it."""
    is_long = len(name) > LONGEST_SHOWN
    return dcc.Link(name, href=href, title=name, className="long-name" if is_long else "")


def cluster_state_words(cluster: ClusterOut) -> str:
    if cluster["fault"] is not None:
        return f"⚠ its engine does not answer: {cluster['fault']}"
    if cluster["paused"]:
        return "‖ paused"
    return "no node yet" if not cluster["node_count"] else "makes rounds"


def node_table(
    nodes: Sequence[NodeOut], state: ClusterStateOut, *, last: str, may: bool, left_out: int
) -> Component:
    """The nodes, who holds their GPUs, and what may be done with each.

    `last`: the id of the cluster's last node, which alone may be resized or removed. `left_out`:
    how many more there are.
    """
    used: dict[str, int] = {}
    jobs: dict[str, dict[str, str]] = {}
    for gpu in state["gpus"]:
        if gpu["held"]:
            used[gpu["node"]] = used.get(gpu["node"], 0) + 1
        if gpu["job_id"] is not None:
            jobs.setdefault(gpu["node"], {})[gpu["job_id"]] = gpu["job_name"] or gpu["job_id"]
        for other in gpu["shared_with"]:
            jobs.setdefault(gpu["node"], {})[other["job_id"]] = other["job_name"]
    numbers = ("GPUs", "In use")
    names = ("Node", "GPU type", *numbers, "State", "Held by", "")
    rows = [
        html.Tr(
            [
                html.Td(cut_name(node["name"])),
                html.Td(gpu_chip(node["gpu_type"])),
                numeric(node["gpu_count"]),
                numeric(used.get(node["name"], 0)),
                html.Td(node_state_words(node)),
                html.Td(_holders(jobs.get(node["name"], {}))),
                html.Td(_node_buttons(node, is_last=node["id"] == last) if may else ""),
            ]
        )
        for node in nodes
    ]
    table = html.Table([head(names, numbers), html.Tbody(rows)], className="plain-table")
    more = f"{plural(left_out, 'more node')}: search for them by name." if left_out else ""
    return html.Div([table, html.Div(more, className="hint")])


def node_state_words(node: NodeOut) -> str:
    if node["fault"] is not None:
        return f"⚠ cannot be used: {node['fault']}"
    drained = len(node["drained_gpus"])
    if not drained:
        return "in service"
    return "drained" if drained == node["gpu_count"] else f"{plural(drained, 'GPU')} drained"


def _holders(jobs: Mapping[str, str]) -> Component | str:
    """Return the names of jobs, those that the visitor may see as links."""
    if not jobs:
        return "–"
    parts: list[Component | str] = []
    for job_id, name in list(jobs.items())[:_JOBS_SHOWN]:
        parts += [", "] if parts else []
        own = job_id.startswith("job_")
        parts.append(_name_link(name, f"/jobs/{job_id}") if own else cut_name(name))
    more = len(jobs) - _JOBS_SHOWN
    return html.Span([*parts, f" and {more} more" if more > 0 else ""])


def _node_buttons(node: NodeOut, *, is_last: bool) -> Component:
    whole = len(node["drained_gpus"]) == node["gpu_count"]
    actions = [] if whole else [("drain", "Drain")]
    actions += [("restore", "Undrain")] if node["drained_gpus"] else []
    actions += [("resize", "GPUs"), ("remove", "Remove")] if is_last else []
    buttons = [
        dmc.Button(
            words,
            variant="subtle",
            size="compact-xs",
            **click_target(
                "admin-node-pressed",
                action=action,
                node=node["id"],
                name=node["name"],
                gpus=str(node["gpu_count"]),
                version=str(node["version"]),
            ),
            **aria(f"{words}: {node['name']}"),
        )
        for action, words in actions
    ]
    group: Component = dmc.Group(buttons, gap=0, wrap="nowrap", justify="flex-end")
    return group
