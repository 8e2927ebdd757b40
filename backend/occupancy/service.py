"""Removes nodes that no job uses. Commits nothing."""

from __future__ import annotations

from sqlmodel import Session, col, delete, select

from backend.attempts.models import GpuHold, GpuScore
from backend.audit.changes import Change, asker, record
from backend.clusters.changes import shown_node
from backend.clusters.models import Node
from backend.clusters.repository import get_cluster, get_node, nodes_of
from backend.clusters.service import save_changed
from backend.clusters.topology import first_gpus
from backend.occupancy.repository import held_gpus
from backend.problems import Conflict
from backend.web.conditional import check_version_if_sent


def delete_node(session: Session, cluster_id: str, node_id: str, if_match: str | None) -> None:
    """Delete a node. Raises Conflict unless it is drained, idle and the last.

    A gap would renumber the GPUs that running jobs hold.
    """
    cluster = get_cluster(session, cluster_id, lock=True)
    node = get_node(session, cluster.id, node_id)
    check_version_if_sent(if_match, node.version)
    nodes = nodes_of(session, cluster.id)
    if len(nodes) == 1:
        raise Conflict("This is the only node of the cluster; a cluster needs at least one.")
    if node.id != nodes[-1].id:
        raise Conflict(
            "This is not the last node: the GPUs after it would change their numbers. "
            "Drain it instead."
        )
    if len(node.drained_gpus) < node.gpu_count:
        raise Conflict("The node is in service. Drain it first.")
    if any(gpu >= first_gpus(nodes)[-1] for gpu in held_gpus(session, cluster.id)):
        raise Conflict("A job still holds GPUs of this node; the next round moves it away.")
    if session.exec(select(GpuHold).where(GpuHold.node_id == node.id)).first() is not None:
        raise Conflict("Processes that are ending still hold GPUs of this node; try again soon.")
    session.execute(delete(GpuScore).where(col(GpuScore.node_id) == node.id))
    session.execute(delete(Node).where(col(Node.id) == node.id))
    record(session, Change(asker(), "remove node", node.id, shown_node(node), {}))
    save_changed(session, cluster)
