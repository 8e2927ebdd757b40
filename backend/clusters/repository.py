"""Reads and writes cluster and node rows. Commits nothing."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from sqlmodel import Session, col, func, select

from backend.clusters.models import Cluster, Node
from backend.problems import NotFound

_ALL = sa.select(Cluster).order_by(col(Cluster.id))
_NAMED = sa.select(Cluster).where(
    (col(Cluster.id) == sa.bindparam("named")) | (col(Cluster.name) == sa.bindparam("named"))
)
_GPUS = (
    sa.select(col(Node.gpu_type), col(Node.gpu_count))
    .where(col(Node.cluster_id) == sa.bindparam("cluster_id"))
    .order_by(col(Node.position))
)


def get_cluster(session: Session, cluster_id: str, *, lock: bool = False) -> Cluster:
    """Find a cluster by id or name. Raises NotFound.

    `lock`: no other transaction can change it until this one ends.
    """
    statement = _NAMED.with_for_update() if lock else _NAMED
    found = session.scalars(statement, {"named": cluster_id}).first()
    if found is None:
        raise NotFound(f"There is no cluster {cluster_id!r}.")
    return found


def all_clusters(session: Session) -> Sequence[Cluster]:
    """List clusters, oldest first (ids ascend).

    Jobs that name no cluster go to the first.
    """
    return session.scalars(_ALL).all()


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
    found: dict[str, int] = {}
    for gpu_type, count in session.connection().execute(_GPUS, {"cluster_id": cluster_id}):
        found[gpu_type] = found.get(gpu_type, 0) + count
    return found
