"""What is written down of changes of clusters and nodes. They are the affair of all tenants."""

from __future__ import annotations

from sqlmodel import Session

from backend.audit.changes import Change, Shown, asker, record
from backend.clusters.models import Cluster, Node

_OF_CLUSTER = (
    "name",
    "policy",
    "policy_parameters",
    "placer",
    "placer_parameters",
    "round_seconds",
    "speed",
    "paused",
    "executor",
    "executor_parameters",
    "keep_rounds",
    "jobs_per_gpu",
    "interference",
    "least_stay_seconds",
    "most_moves_per_hour",
)
_OF_NODE = ("name", "gpu_type", "gpu_count", "memory_gib", "drained_gpus")


def shown_cluster(cluster: Cluster) -> Shown:
    return {name: getattr(cluster, name) for name in _OF_CLUSTER}


def shown_node(node: Node) -> Shown:
    return {name: getattr(node, name) for name in _OF_NODE}


def record_cluster(session: Session, action: str, cluster: Cluster, before: Shown) -> None:
    record(session, Change(asker(), action, cluster.id, before, shown_cluster(cluster)))


def record_nodes(session: Session, cluster: Cluster, nodes: list[Node]) -> None:
    """Write down that nodes were added, in one record of the cluster."""
    added = {"nodes": [shown_node(node) for node in nodes]}
    record(session, Change(asker(), "add nodes", cluster.id, {}, added))


def record_node(session: Session, action: str, node: Node, before: Shown) -> None:
    record(session, Change(asker(), action, node.id, before, shown_node(node)))
