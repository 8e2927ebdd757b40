"""Free places while a placer works: which GPUs of which node are still to be had. Knows no rule of placement."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from maat.scheduling.cluster import Cluster


class FreeGpus:
    """Usable GPUs with a free place, by node, lowest number first. A job takes one place on each of its GPUs."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        offsets = cluster.node_offsets.tolist()
        available = cluster.gpu_available.tolist()
        self._places: list[dict[int, int]] = [
            {gpu: cluster.jobs_per_gpu for gpu in range(offsets[n], offsets[n + 1]) if available[gpu]} for n in range(len(cluster.nodes))
        ]
        self._node_of = cluster.gpu_node.tolist()
        self.whole: list[int] = cluster.node_available.tolist()

    def count(self, node: int, besides: Collection[int] = ()) -> int:
        """GPUs of the node that a job which has `besides` already could have."""
        places = self._places[node]
        return sum(gpu not in besides for gpu in places) if besides else len(places)

    def is_idle(self, node: int) -> bool:
        """Whether the node has usable GPUs and nobody holds one."""
        return self.whole[node] > 0 and sum(self._places[node].values()) == self.whole[node] * self.cluster.jobs_per_gpu

    def nodes_of_type(self, gpu_type: str) -> list[int]:
        return np.flatnonzero(self.cluster.node_type == self.cluster.type_index[gpu_type]).tolist()

    def are_free(self, gpus: Iterable[int]) -> bool:
        return all(gpu in self._places[self._node_of[gpu]] for gpu in gpus)

    def take(self, gpus: Iterable[int]) -> None:
        for gpu in gpus:
            places = self._places[self._node_of[gpu]]
            places[gpu] -= 1
            if not places[gpu]:
                del places[gpu]

    def take_from(self, node: int, count: int, besides: Collection[int] = ()) -> list[int]:
        """The `count` lowest free GPUs of a node for a job which has `besides` already; one place of each is taken."""
        taken = sorted(gpu for gpu in self._places[node] if gpu not in besides)[:count]
        self.take(taken)
        return taken

    def give_back(self, gpus: Iterable[int]) -> None:
        for gpu in gpus:
            places = self._places[self._node_of[gpu]]
            places[gpu] = places.get(gpu, 0) + 1
