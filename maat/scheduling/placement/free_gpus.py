"""The free places on GPUs while a placer works. Knows no placement rule."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from maat.scheduling.arrays import IntArray
from maat.scheduling.cluster import Cluster


class FreeGpus:
    """The usable GPUs with a free place, by node.

    A job takes one place on each of its GPUs. `places`: places on each GPU; by default as many as
    jobs may share it. Counts by node are arrays, so that the search for a node is one numpy pass.
    """

    def __init__(self, cluster: Cluster, *, places: int | None = None) -> None:
        self.cluster = cluster
        each = cluster.jobs_per_gpu if places is None else places
        offsets = cluster.node_offsets.tolist()
        available = cluster.gpu_available.tolist()
        self._places: list[dict[int, int]] = [
            {gpu: each for gpu in range(offsets[n], offsets[n + 1]) if available[gpu]}
            for n in range(len(cluster.nodes))
        ]
        self._node_of: list[int] = cluster.gpu_node.tolist()
        self._taken = np.zeros(len(cluster.nodes), dtype=np.int64)
        self._nodes = {
            name: np.flatnonzero(cluster.node_type == t)
            for t, name in enumerate(cluster.type_names)
        }
        self.whole = cluster.node_available
        self.counts: IntArray = cluster.node_available.copy()

    def nodes_of_type(self, gpu_type: str) -> IntArray:
        """Return the node numbers of a type, ascending."""
        return self._nodes[gpu_type]

    def of_type(self, gpu_type: str) -> IntArray:
        """Return the free GPUs of a type, ascending."""
        return np.array(
            [gpu for node in self._nodes[gpu_type].tolist() for gpu in sorted(self._places[node])],
            dtype=np.int64,
        )

    def idle_nodes(self, gpu_type: str) -> IntArray:
        """Return the nodes that have usable GPUs, none of them taken."""
        nodes = self._nodes[gpu_type]
        idle: IntArray = nodes[(self._taken[nodes] == 0) & (self.whole[nodes] > 0)]
        return idle

    def tightest(self, gpu_type: str, count: int, besides: Collection[int] = ()) -> int | None:
        """Return the node with fewest free GPUs that has `count` for a job, or None.

        The GPUs `besides`, which the job has already, do not count as free.
        """
        nodes = self._nodes[gpu_type]
        room = self.counts[nodes]
        for gpu in besides:
            node = self._node_of[gpu]
            room[nodes == node] -= gpu in self._places[node]
        room = np.where(room >= count, room, np.iinfo(np.int64).max)
        best = int(np.argmin(room)) if len(room) else 0
        return int(nodes[best]) if len(room) and room[best] < np.iinfo(np.int64).max else None

    def are_free(self, gpus: Iterable[int]) -> bool:
        return all(gpu in self._places[self._node_of[gpu]] for gpu in gpus)

    def take(self, gpus: Iterable[int]) -> None:
        for gpu in gpus:
            node = self._node_of[gpu]
            places = self._places[node]
            places[gpu] -= 1
            self._taken[node] += 1
            if not places[gpu]:
                del places[gpu]
                self.counts[node] -= 1

    def take_from(self, node: int, count: int, besides: Collection[int] = ()) -> list[int]:
        """Take one place on each of the `count` lowest free GPUs of a node; return them.

        The GPUs `besides`, which the job has already, are left out.
        """
        taken = sorted(gpu for gpu in self._places[node] if gpu not in besides)[:count]
        self.take(taken)
        return taken

    def give_back(self, gpus: Iterable[int]) -> None:
        for gpu in gpus:
            node = self._node_of[gpu]
            places = self._places[node]
            self.counts[node] += gpu not in places
            places[gpu] = places.get(gpu, 0) + 1
            self._taken[node] -= 1
