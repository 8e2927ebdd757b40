"""The numbers of a cluster's GPUs, which change when nodes are added or removed.

A GPU's number follows from the order of the nodes. Stored numbers belong to the nodes that there
were when they were stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from maat.scheduling.cluster import Cluster
from maat.scheduling.job import Allocation
from maat.scheduling.rounds import Changes


def layout(cluster: Cluster) -> list[list[Any]]:
    """Return name and GPU count of every node in order; they fix the GPU numbers."""
    return [[node.id, node.gpu_count] for node in cluster.nodes]


def new_numbers(before: Sequence[Sequence[Any]], cluster: Cluster) -> dict[int, int] | None:
    """Return old GPU number -> new one, by node name and index on the node.

    GPUs that no longer exist are left out. Returns None if nothing moved.
    """
    if [list(node) for node in before] == layout(cluster)[: len(before)]:
        return None
    first = dict(
        zip((node.id for node in cluster.nodes), cluster.node_offsets.tolist(), strict=False)
    )
    size = {node.id: node.gpu_count for node in cluster.nodes}
    numbers: dict[int, int] = {}
    old = 0
    for name, count in before:
        numbers |= {old + i: first[name] + i for i in range(min(count, size.get(name, 0)))}
        old += count
    return numbers


def renumbered(held: Allocation, numbers: Mapping[int, int]) -> Allocation | None:
    """Return the same GPUs by their new numbers; None if one of them no longer exists."""
    if not all(gpu in numbers for gpu in held.gpus):
        return None
    return Allocation(held.gpu_type, tuple(sorted(numbers[gpu] for gpu in held.gpus)))


def renumbered_changes(changes: Changes, numbers: Mapping[int, int]) -> Changes:
    """Return the changes by the new numbers, without those onto GPUs that no longer exist."""
    items = []
    for change in changes.items:
        after = None if change.after is None else renumbered(change.after, numbers)
        if change.after is None or after is not None:
            items.append(replace(change, after=after))
    return replace(changes, items=tuple(items))
