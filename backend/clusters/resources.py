"""Clusters and nodes as the API answers them."""

from __future__ import annotations

from backend.answers import answer_of
from backend.clocktime import cluster_seconds, shown_at, this_moment
from backend.clusters.models import Cluster, Node
from maat.api.clusters import ClusterOut, NodeOut


def show_node(node: Node) -> NodeOut:
    return answer_of(NodeOut, node)


def show_cluster(cluster: Cluster) -> ClusterOut:
    return answer_of(
        ClusterOut, cluster, now=shown_at(cluster, cluster_seconds(cluster, this_moment()))
    )
