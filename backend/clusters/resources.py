"""Clusters and nodes as the API answers them."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from sqlmodel import Session, col

from backend.answers import answer_of
from backend.clocktime import cluster_seconds, shown_at, this_moment
from backend.clusters.models import Cluster, Node
from maat.api.clusters import ClusterOut, NodeOut
from maat.scheduling.policies import POLICIES
from maat.scheduling.weights import weighs_jobs


def show_node(node: Node) -> NodeOut:
    return answer_of(NodeOut, node)


def show_clusters(session: Session, clusters: Sequence[Cluster]) -> list[ClusterOut]:
    """Return the clusters, each with how many nodes and GPUs it has."""
    columns = (col(Node.cluster_id), sa.func.count(), sa.func.sum(Node.gpu_count))
    wanted = col(Node.cluster_id).in_([cluster.id for cluster in clusters])
    counted = sa.select(*columns).where(wanted).group_by(col(Node.cluster_id))
    sizes = {found: (nodes, gpus) for found, nodes, gpus in session.execute(counted)}
    return [_shown(cluster, *sizes.get(cluster.id, (0, 0))) for cluster in clusters]


def show_cluster(session: Session, cluster: Cluster) -> ClusterOut:
    return show_clusters(session, [cluster])[0]


def _shown(cluster: Cluster, nodes: int, gpus: int) -> ClusterOut:
    now = shown_at(cluster, cluster_seconds(cluster, this_moment()))
    policy = POLICIES.build(cluster.policy, cluster.policy_parameters)
    return answer_of(
        ClusterOut,
        cluster,
        now=now,
        weighs_jobs=weighs_jobs(policy),
        node_count=nodes,
        gpu_count=int(gpus),
    )
