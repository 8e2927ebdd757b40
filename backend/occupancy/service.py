"""Changes nodes that jobs may use: drains them, gives them GPUs, removes them. Commits nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlmodel import Session, col, delete, select

from backend.attempts.models import GpuHold, GpuScore
from backend.audit.changes import Change, asker, record
from backend.clusters.changes import record_node, shown_node
from backend.clusters.models import Cluster, Node
from backend.clusters.repository import get_cluster, get_node, nodes_of
from backend.clusters.service import check_size, check_whole, save_changed
from backend.clusters.topology import first_gpus
from backend.occupancy.repository import held_gpus
from backend.problems import Conflict, FieldError, Invalid
from backend.web.conditional import check_version, check_version_if_sent
from maat.api.clusters import NodeChanges
from maat.vocabulary import ExecutorKind


@dataclass(frozen=True)
class WantedNode:
    """What a node is to be: its GPUs, and those of them out of service, ascending."""

    gpu_count: int
    drained: list[int]


def wanted_node(session: Session, cluster: Cluster, node: Node, changes: NodeChanges) -> WantedNode:
    """Return what a node would be, checked. Raises Invalid naming the field, Conflict."""
    count = node.gpu_count if changes.gpu_count is None else changes.gpu_count
    if count != node.gpu_count:
        _check_count(session, cluster, node, count)
    if changes.drained_gpus is None:
        return WantedNode(count, [gpu for gpu in node.drained_gpus if gpu < count])
    drained = sorted(set(changes.drained_gpus))
    _check_drained(cluster, drained, gpu_count=count)
    return WantedNode(count, drained)


def change_node(
    session: Session, cluster_id: str, node_id: str, changes: NodeChanges, if_match: str | None
) -> Node:
    cluster = get_cluster(session, cluster_id, lock=True)
    node = get_node(session, cluster.id, node_id)
    check_version(if_match, node.version)
    wanted = wanted_node(session, cluster, node, changes)
    gone = range(wanted.gpu_count, node.gpu_count)
    if gone:
        _check_idle(session, cluster, node, gone)
        lost = (col(GpuScore.node_id) == node.id, col(GpuScore.gpu_index) >= wanted.gpu_count)
        session.execute(delete(GpuScore).where(*lost))
    return _set(session, cluster, node, wanted, action="change node")


def set_drained(
    session: Session, cluster_id: str, node_id: str, drained: bool, if_match: str | None
) -> Node:
    """Drain every GPU of a node, or return all to service. Idempotent.

    The next round moves the jobs that run there.
    """
    cluster = get_cluster(session, cluster_id, lock=True)
    node = get_node(session, cluster.id, node_id)
    wanted = WantedNode(node.gpu_count, list(range(node.gpu_count)) if drained else [])
    if wanted.drained != node.drained_gpus:
        check_version_if_sent(if_match, node.version)
    action = "drain node" if drained else "restore node"
    return _set(session, cluster, node, wanted, action=action)


def delete_node(session: Session, cluster_id: str, node_id: str, if_match: str | None) -> None:
    """Delete a node. Raises Conflict unless it is drained, idle and the last.

    A gap would renumber the GPUs that running jobs hold.
    """
    cluster = get_cluster(session, cluster_id, lock=True)
    node = get_node(session, cluster.id, node_id)
    check_version_if_sent(if_match, node.version)
    check_removable(session, cluster, node)
    _check_idle(session, cluster, node, range(node.gpu_count))
    session.execute(delete(GpuScore).where(col(GpuScore.node_id) == node.id))
    session.execute(delete(Node).where(col(Node.id) == node.id))
    record(session, Change(asker(), "remove node", node.id, shown_node(node), {}))
    save_changed(session, cluster)


def check_removable(session: Session, cluster: Cluster, node: Node) -> None:
    """Raise Conflict for a node that stays, whatever jobs do."""
    nodes = nodes_of(session, cluster.id)
    if len(nodes) == 1:
        raise Conflict("This is the only node of the cluster; a cluster needs at least one.")
    if node.id != nodes[-1].id:
        is_drained = len(node.drained_gpus) == node.gpu_count
        instead = "It is drained: leave it so." if is_drained else "Drain it instead."
        raise Conflict(
            f"This is not the last node: the GPUs after it would change their numbers. {instead}"
        )


def _check_idle(session: Session, cluster: Cluster, node: Node, gpus: Sequence[int]) -> None:
    """Raise Conflict unless these GPUs of the last node are drained and nobody holds them."""
    if not set(gpus) <= set(node.drained_gpus):
        which = "The node is" if len(gpus) == node.gpu_count else f"GPU {gpus[0]} is"
        raise Conflict(f"{which} in service. Drain it first.")
    first = first_gpus(nodes_of(session, cluster.id))[-1]
    if any(gpu >= first + gpus[0] for gpu in held_gpus(session, cluster.id)):
        raise Conflict("A job still holds GPUs of this node; the next round moves it away.")
    mine = (GpuHold.node_id == node.id, col(GpuHold.gpu_index) >= gpus[0])
    if session.exec(select(GpuHold).where(*mine)).first() is not None:
        raise Conflict("Processes that are ending still hold GPUs of this node; try again soon.")


def _check_count(session: Session, cluster: Cluster, node: Node, count: int) -> None:
    """Raise Conflict or Invalid if the node cannot have so many GPUs."""
    if cluster.finds_nodes:
        raise Conflict("How many GPUs this node has is found, not declared.")
    nodes = nodes_of(session, cluster.id)
    if node.id != nodes[-1].id:
        raise Conflict(
            "This is not the last node: the GPUs after it would change their numbers. "
            "Drain the GPUs that are not to be used, or add a node."
        )
    others = nodes[:-1]
    total = sum(one.gpu_count for one in others) + count
    check_size(len(nodes), total, "/gpu_count")
    check_whole([*others, Node(**(node.model_dump() | {"gpu_count": count, "drained_gpus": []}))])


def _check_drained(cluster: Cluster, drained: Sequence[int], *, gpu_count: int) -> None:
    if cluster.executor == ExecutorKind.SLURM and len(drained) not in (0, gpu_count):
        message = "Slurm chooses the GPUs on a node: single ones cannot be left out."
        remedy = "Drain the whole node, or take the GPU out of Slurm's gres.conf."
        raise _wrong_gpus("all_or_none", message, remedy, drained)
    if drained and drained[-1] >= gpu_count:
        message = "The node does not have one of these GPUs."
        raise _wrong_gpus("no_such_gpu", message, f"Use indices 0 to {gpu_count - 1}.", drained)


def _wrong_gpus(code: str, message: str, remedy: str, drained: Iterable[int]) -> Invalid:
    error = FieldError("/drained_gpus", code, message, remedy, list(drained))
    return Invalid(message, errors=[error])


def _set(
    session: Session, cluster: Cluster, node: Node, wanted: WantedNode, *, action: str
) -> Node:
    if (wanted.gpu_count, wanted.drained) == (node.gpu_count, node.drained_gpus):
        return node
    before = shown_node(node)
    node.gpu_count, node.drained_gpus = wanted.gpu_count, wanted.drained
    node.version += 1
    session.add(node)
    save_changed(session, cluster)
    record_node(session, action, node, before)
    return node
