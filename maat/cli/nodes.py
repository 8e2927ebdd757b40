"""`maat nodes`, `add-nodes`, `drain`, `undrain`, `remove-node`: the nodes of a live cluster."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maat.api.clusters import MAX_NODES
from maat.cli.numbers import whole_option
from maat.cli.service import (
    DEFAULT_URL,
    AsJson,
    Url,
    client_of,
    show,
    table_of,
)
from maat.library.live import cluster_or_first
from maat.vocabulary import MAX_GPUS_PER_NODE

if TYPE_CHECKING:
    from maat.api.clusters import ClusterStateOut, NodeEffectOut, NodeOut

Cluster = Annotated[str | None, typer.Option(help="Cluster id or name; default: the first.")]
NodeNamed = Annotated[str, typer.Argument(help="The node's name or id.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say which jobs would have to leave.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask before.")]
_COLUMNS = ("name", "gpu_type", "GPUs", "in use", "drained", "state", "jobs")


def nodes(
    cluster: Cluster = None,
    as_of: Annotated[
        int | None,
        whole_option("--round", least=1, most=999_999_999, help="Who held them after this round."),
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List the nodes of a cluster: GPUs, which are out of service, and who holds them."""
    with client_of(url) as maat:
        where = cluster_or_first(maat, cluster)
        found, state = maat.every_node(where), maat.cluster_state(where, round=as_of)
    show(found, as_json, table_of(_COLUMNS, _rows(found, state)))


def add_nodes(
    gpu_type: Annotated[str, typer.Option("--gpu-type", help="Their GPU type.")],
    gpus: Annotated[
        int,
        whole_option("--gpus", least=1, most=MAX_GPUS_PER_NODE, help="GPUs of each node."),
    ],
    count: Annotated[
        int, whole_option("--count", least=1, most=MAX_NODES, help="How many equal nodes.")
    ] = 1,
    name: Annotated[
        str | None, typer.Option(help="Their name; default: by type and number.")
    ] = None,
    cluster: Cluster = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Add nodes to a cluster, after those that it has."""
    node: dict[str, Any] = {"gpu_type": gpu_type, "gpu_count": gpus, "count": count}
    if name is not None:
        node["name"] = name
    with client_of(url) as maat:
        made = maat.add_nodes(cluster_or_first(maat, cluster), {"nodes": [node]})
    show(made, as_json, f"added: {', '.join(one['name'] for one in made)}")


def drain(
    node: NodeNamed,
    gpu: Annotated[
        list[int] | None,
        typer.Option(help="Only this GPU, by its number on the node. May be repeated."),
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    cluster: Cluster = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Take a node, or some of its GPUs, out of service: the next round moves its jobs."""
    with client_of(url) as maat:
        where = cluster_or_first(maat, cluster)
        known = maat.node(where, node)
        changes = {"drained_gpus": sorted({*known["drained_gpus"], *(gpu or ())})}
        effect = (
            maat.try_node_change(where, known["id"], changes)
            if gpu
            else maat.try_drain(where, known["id"])
        )
        if dry_run:
            show(effect, as_json, "\n".join(effect_lines(effect)))
            return
        _confirm(effect, yes=yes, question=f"drain {known['name']}?")
        changed = (
            maat.change_node(where, known["id"], changes, version=known["version"])
            if gpu
            else maat.drain_node(where, known["id"], version=known["version"])
        )
    show(changed, as_json, f"{changed['name']} is drained: {_gpus(changed)}")


def undrain(
    node: NodeNamed, cluster: Cluster = None, url: Url = DEFAULT_URL, as_json: AsJson = False
) -> None:
    """Return all GPUs of a node to service."""
    with client_of(url) as maat:
        changed = maat.restore_node(cluster_or_first(maat, cluster), node)
    show(changed, as_json, f"{changed['name']} is back in service")


def remove_node(
    node: NodeNamed,
    dry_run: DryRun = False,
    cluster: Cluster = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Remove the last node of a cluster, which must be drained and idle."""
    with client_of(url) as maat:
        where = cluster_or_first(maat, cluster)
        if dry_run:
            effect = maat.try_node_removal(where, node)
            show(effect, as_json, "\n".join(effect_lines(effect)))
            return
        known = maat.node(where, node)
        maat.remove_node(where, known["id"], version=known["version"])
    show({"removed": known["name"]}, as_json, f"{known['name']} is removed")


def resize_node(
    node: NodeNamed,
    gpus: Annotated[
        int, whole_option("--gpus", least=1, most=MAX_GPUS_PER_NODE, help="GPUs that it has.")
    ],
    dry_run: DryRun = False,
    cluster: Cluster = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Say how many GPUs the last node of a cluster has. Those that go must be drained and idle."""
    with client_of(url) as maat:
        where = cluster_or_first(maat, cluster)
        known = maat.node(where, node)
        changes = {"gpu_count": gpus}
        if dry_run:
            effect = maat.try_node_change(where, known["id"], changes)
            show(effect, as_json, "\n".join(effect_lines(effect)))
            return
        changed = maat.change_node(where, known["id"], changes, version=known["version"])
    show(changed, as_json, f"{changed['name']} has {changed['gpu_count']} GPUs")


def effect_lines(effect: NodeEffectOut) -> list[str]:
    """Return who would have to leave, whether they can, and what that costs."""
    lines = [effect["sentence"]]
    for job in effect["jobs"]:
        fate = f"restart {job['restart_seconds']:g} s" if job["may_move"] else "cannot be moved"
        held = f"{job['gpus_here']} of {job['gpu_count']} x {job['gpu_type']}"
        lines.append(f"  {job['job_id']}  {job['job_name']}  {held}  {fate}")
    return lines


def _confirm(effect: NodeEffectOut, *, yes: bool, question: str) -> None:
    if effect["jobs"] and not yes:
        typer.echo("\n".join(effect_lines(effect)), err=True)
        typer.confirm(question, abort=True, err=True)


def _rows(found: list[NodeOut], state: ClusterStateOut) -> list[list[str]]:
    used = Counter(gpu["node"] for gpu in state["gpus"] if gpu["held"])
    jobs: dict[str, dict[str, None]] = {}
    for gpu in state["gpus"]:
        if gpu["job_name"] is not None:
            jobs.setdefault(gpu["node"], {})[gpu["job_name"]] = None
        for other in gpu["shared_with"]:
            jobs.setdefault(gpu["node"], {})[other["job_name"]] = None
    return [
        [
            one["name"],
            one["gpu_type"],
            str(one["gpu_count"]),
            str(used[one["name"]]),
            str(len(one["drained_gpus"])),
            node_state(one),
            ", ".join(jobs.get(one["name"], ())),
        ]
        for one in found
    ]


def node_state(node: NodeOut) -> str:
    if node["fault"] is not None:
        return f"cannot be used: {node['fault']}"
    if not node["drained_gpus"]:
        return "in service"
    return "drained" if len(node["drained_gpus"]) == node["gpu_count"] else "partly drained"


def _gpus(node: NodeOut) -> str:
    return f"{len(node['drained_gpus'])} of {node['gpu_count']} GPUs"
