"""Clusters and nodes as the API answers them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import sqlalchemy as sa
from sqlmodel import Session, col

from backend.answers import answer_of
from backend.clocktime import cluster_seconds, shown_at, this_moment
from backend.clusters.interference import interference_of, shown_interference
from backend.clusters.models import Cluster, Node
from backend.clusters.notes import cluster_notes
from maat.api.clusters import ClusterOut, NodeOut
from maat.scheduling.interference import DeclaredSlowdowns
from maat.scheduling.weights import weighs_jobs


def show_node(node: Node) -> NodeOut:
    return answer_of(NodeOut, node)


def show_clusters(session: Session, clusters: Sequence[Cluster]) -> list[ClusterOut]:
    """Return the clusters, each with how many nodes and GPUs it has."""
    by = (col(Node.cluster_id), col(Node.gpu_type))
    wanted = col(Node.cluster_id).in_([cluster.id for cluster in clusters])
    counted = sa.select(*by, sa.func.count(), sa.func.sum(Node.gpu_count)).where(wanted)
    sizes: dict[str, dict[str, _Size]] = {}
    for found, kind, nodes, gpus in session.execute(counted.group_by(*by).order_by(*by)):
        sizes.setdefault(found, {})[kind] = _Size(nodes, int(gpus))
    declared = shown_interference(session, clusters)
    return [
        _shown(
            cluster,
            sizes.get(cluster.id, {}),
            declared.get(cluster.id),
            interference_of(session, cluster),
        )
        for cluster in clusters
    ]


class _Size(NamedTuple):
    """The nodes of one GPU type, and their GPUs."""

    nodes: int
    gpus: int


def show_cluster(session: Session, cluster: Cluster) -> ClusterOut:
    return show_clusters(session, [cluster])[0]


def _shown(
    cluster: Cluster,
    by_type: Mapping[str, _Size],
    interference: str | float | None,
    slowdowns: DeclaredSlowdowns | None,
) -> ClusterOut:
    now = shown_at(cluster, cluster_seconds(cluster, this_moment()))
    policy, _ = cluster.parts.built_or_missing()
    return answer_of(
        ClusterOut,
        cluster,
        now=now,
        weighs_jobs=weighs_jobs(policy),
        node_count=sum(size.nodes for size in by_type.values()),
        gpu_count=sum(size.gpus for size in by_type.values()),
        notes=cluster_notes(
            cluster, {name: size.gpus for name, size in by_type.items()}, slowdowns
        ),
        interference=interference,
    )
