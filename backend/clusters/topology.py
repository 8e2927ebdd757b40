"""A cluster's nodes as the engine's Cluster, with the numbering of GPUs.

Reads nothing from the database.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from backend.clusters.models import Node
from maat.scheduling import cluster as engine


def engine_node(node: Node) -> engine.Node:
    return engine.Node(node.name, node.gpu_type, node.gpu_count, frozenset(node.drained_gpus))


def engine_cluster(nodes: Sequence[Node], *, jobs_per_gpu: int) -> engine.Cluster:
    """Return the engine's cluster of these nodes, given in order of `position`.

    Raises ClusterError.
    """
    memory = {node.gpu_type: node.memory_gib for node in nodes if node.memory_gib is not None}
    return engine.Cluster.of(
        [engine_node(node) for node in nodes], memory_gib=memory, jobs_per_gpu=jobs_per_gpu
    )


def first_gpus(nodes: Sequence[Node]) -> list[int]:
    """Return the number of each node's first GPU."""
    offsets, total = [], 0
    for node in nodes:
        offsets.append(total)
        total += node.gpu_count
    return offsets


def node_of_gpu(nodes: Sequence[Node]) -> list[int]:
    """Return the index of the node of every GPU."""
    return [index for index, node in enumerate(nodes) for _ in range(node.gpu_count)]


def count_nodes(owner: Sequence[int], gpus: Iterable[int]) -> int:
    """Count the nodes that these GPUs are on. `owner`: from `node_of_gpu`.

    GPUs that no longer exist count as none.
    """
    return len({owner[gpu] for gpu in gpus if 0 <= gpu < len(owner)})


def capacity_by_type(nodes: Iterable[Node], *, usable_only: bool) -> Mapping[str, int]:
    """Count GPUs by type in order of the nodes: all, or those in service."""
    found: dict[str, int] = {}
    for node in nodes:
        out = node.gpu_count if node.fault is not None else len(node.drained_gpus)
        count = node.gpu_count - (out if usable_only else 0)
        found[node.gpu_type] = found.get(node.gpu_type, 0) + count
    return found
