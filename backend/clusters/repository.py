"""Reads and writes cluster and node rows. Commits nothing."""

from __future__ import annotations

from collections.abc import Sequence

from sqlmodel import Session, col, func, select

from backend.clusters.models import Cluster, Node
from backend.problems import NotFound


def get_cluster(session: Session, cluster_id: str, *, lock: bool = False) -> Cluster:
    """Find a cluster by id or name. Raises NotFound.

    `lock`: no other transaction can change it until this one ends.
    """
    statement = select(Cluster).where(
        (col(Cluster.id) == cluster_id) | (col(Cluster.name) == cluster_id)
    )
    found = session.exec(statement.with_for_update() if lock else statement).first()
    if found is None:
        raise NotFound(f"There is no cluster {cluster_id!r}.")
    return found


def all_clusters(session: Session) -> Sequence[Cluster]:
    """List clusters, oldest first (ids ascend).

    Jobs that name no cluster go to the first.
    """
    return session.exec(select(Cluster).order_by(col(Cluster.id))).all()


def nodes_of(session: Session, cluster_id: str) -> Sequence[Node]:
    """List the nodes in the order that numbers the GPUs."""
    return session.exec(
        select(Node).where(Node.cluster_id == cluster_id).order_by(col(Node.position))
    ).all()


def get_node(session: Session, cluster_id: str, node_id: str) -> Node:
    """Find a node by id or by name within the cluster. Raises NotFound."""
    named = (col(Node.id) == node_id) | (col(Node.name) == node_id)
    found = session.exec(select(Node).where(Node.cluster_id == cluster_id, named)).first()
    if found is None:
        raise NotFound(f"The cluster has no node {node_id!r}.")
    return found


def name_is_taken(session: Session, name: str) -> bool:
    return (
        session.exec(select(func.count()).select_from(Cluster).where(Cluster.name == name)).one()
        > 0
    )


def all_gpus_of(session: Session, cluster_id: str) -> dict[str, int]:
    """Count the GPUs by type in order of the nodes, those out of service too."""
    columns = select(Node.gpu_type, Node.gpu_count).where(Node.cluster_id == cluster_id)
    found: dict[str, int] = {}
    for gpu_type, count in session.exec(columns.order_by(col(Node.position))):
        found[gpu_type] = found.get(gpu_type, 0) + count
    return found
