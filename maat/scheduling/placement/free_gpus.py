"""Free places while a placer works: which GPUs of which node are still to be had. Knows no rule of placement."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from maat.scheduling.cluster import Cluster


class FreeGpus:
    """Free usable GPUs by node, lowest number first."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        offsets = cluster.node_offsets.tolist()
        available = cluster.gpu_available.tolist()
        self._free: list[list[int]] = [
            [gpu for gpu in range(offsets[n], offsets[n + 1]) if available[gpu]] * cluster.jobs_per_gpu for n in range(len(cluster.nodes))
        ]
        self._node_of = cluster.gpu_node.tolist()
        self.whole = cluster.node_available.tolist()

    def count(self, node: int) -> int:
        return len(self._free[node])

    def nodes_of_type(self, gpu_type: str) -> list[int]:
        return np.flatnonzero(self.cluster.node_type == self.cluster.type_index[gpu_type]).tolist()

    def are_free(self, gpus: Iterable[int]) -> bool:
        return all(gpu in self._free[self._node_of[gpu]] for gpu in gpus)

    def take(self, gpus: Iterable[int]) -> None:
        for gpu in gpus:
            self._free[self._node_of[gpu]].remove(gpu)

    def take_from(self, node: int, count: int) -> list[int]:
        """The `count` lowest free GPUs of a node, no longer free."""
        taken = sorted(set(self._free[node]))[:count]
        self.take(taken)
        return taken

    def give_back(self, gpus: Iterable[int]) -> None:
        for gpu in gpus:
            self._free[self._node_of[gpu]].append(gpu)
