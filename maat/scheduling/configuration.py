"""Configurations (n, r, t) that an elastic policy may grant, and their table.

The table is the columns of every matrix.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from maat.scheduling.arrays import BoolArray, IntArray
from maat.scheduling.cluster import Cluster


@dataclass(frozen=True, slots=True, order=True)
class Configuration:
    """`gpu_count` GPUs of one type on `node_count` nodes: Sia's (n, r, t).

    Sia section 3.3.
    """

    node_count: int
    gpu_count: int
    gpu_type: str


@dataclass(frozen=True)
class ConfigurationTable:
    """The columns C of every matrix.

    They are ordered by type as in the cluster, then by GPU count. `requested_only`: columns that
    exist because a rigid or hybrid-parallel job asked for that count; elastic jobs do not get
    them.
    """

    configurations: tuple[Configuration, ...]
    type_names: tuple[str, ...]
    requested_only: frozenset[Configuration] = frozenset()

    @cached_property
    def node_count(self) -> IntArray:
        """Return the nodes of each configuration, shape (C,)."""
        return np.array([c.node_count for c in self.configurations], dtype=np.int64)

    @cached_property
    def gpu_count(self) -> IntArray:
        """Return the GPUs of each configuration, shape (C,)."""
        return np.array([c.gpu_count for c in self.configurations], dtype=np.int64)

    @cached_property
    def type_index(self) -> IntArray:
        """Return the index into the cluster's types, shape (C,)."""
        order = {name: i for i, name in enumerate(self.type_names)}
        return np.array([order[c.gpu_type] for c in self.configurations], dtype=np.int64)

    @cached_property
    def elastic(self) -> BoolArray:
        """Return which columns an elastic job may have, shape (C,)."""
        return np.array([c not in self.requested_only for c in self.configurations], dtype=bool)

    @cached_property
    def _columns(self) -> dict[tuple[str, int], int]:
        return {(c.gpu_type, c.gpu_count): i for i, c in enumerate(self.configurations)}

    def __len__(self) -> int:
        return len(self.configurations)

    def column(self, gpu_type: str, gpu_count: int) -> int | None:
        """Return the column of so many GPUs of that type, None if there is none."""
        return self._columns.get((gpu_type, gpu_count))


def virtual_nodes(gpu_count: int) -> tuple[int, ...]:
    """Return the powers of two that sum to a node's GPUs, largest first.

    These are its virtual nodes (Sia section 3.3).
    """
    return tuple(
        1 << bit for bit in reversed(range(gpu_count.bit_length())) if gpu_count >> bit & 1
    )


def virtual_node_sizes(cluster: Cluster, gpu_type: str) -> Counter[int]:
    """Count the virtual nodes of each size that the usable GPUs of a type make."""
    sizes: Counter[int] = Counter()
    for node in cluster.nodes_of(gpu_type):
        sizes.update(virtual_nodes(node.available_count))
    return sizes


@lru_cache(maxsize=16)
def sia_configurations(cluster: Cluster) -> ConfigurationTable:
    """Return Sia's valid set of configurations.

    On one (virtual) node: powers of two up to its size R. Beyond: k = 2, 3, ... whole nodes of the
    largest size. A type of N intact nodes of R = 2^m GPUs has N + log2 R configurations.
    """
    configurations: list[Configuration] = []
    for gpu_type in cluster.type_names:
        sizes = virtual_node_sizes(cluster, gpu_type)
        if not sizes:
            continue
        largest = max(sizes)
        configurations += [
            Configuration(1, 1 << bit, gpu_type) for bit in range(largest.bit_length())
        ]
        configurations += [
            Configuration(k, k * largest, gpu_type) for k in range(2, sizes[largest] + 1)
        ]
    return ConfigurationTable(tuple(configurations), cluster.type_names)


def with_counts(
    table: ConfigurationTable, cluster: Cluster, counts: Sequence[int]
) -> ConfigurationTable:
    """Return the table with further GPU counts on every type that can hold them.

    Rigid and hybrid-parallel jobs ask for these counts. Such a configuration need not be a power
    of two; it takes as few nodes as it can.
    """
    extra: set[Configuration] = set()
    for t, gpu_type in enumerate(cluster.type_names):
        per_node = int(cluster.gpus_per_node[t])
        fresh = (
            n
            for n in counts
            if 0 < n <= cluster.usable_gpus[t] and table.column(gpu_type, n) is None
        )
        extra |= {Configuration(-(-n // per_node), n, gpu_type) for n in fresh}
    if not extra:
        return table
    order = {name: i for i, name in enumerate(cluster.type_names)}
    everything = sorted(
        {*table.configurations, *extra}, key=lambda c: (order[c.gpu_type], c.gpu_count)
    )
    return ConfigurationTable(tuple(everything), table.type_names, table.requested_only | extra)
