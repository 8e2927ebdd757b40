"""GPU numbers of a cluster as indices on its nodes, and back."""

from __future__ import annotations

from backend.models import AttemptRow
from maat.scheduling.cluster import Cluster
from maat.scheduling.job import Allocation


class Places:
    """The GPUs of one cluster, by number and by node."""

    def __init__(self, cluster: Cluster) -> None:
        offsets = cluster.node_offsets.tolist()
        self._first = {node.id: offsets[i] for i, node in enumerate(cluster.nodes)}
        self._size = {node.id: node.gpu_count for node in cluster.nodes}
        self._of_gpu = [
            (node.id, index) for node in cluster.nodes for index in range(node.gpu_count)
        ]

    def by_node(self, held: Allocation) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for gpu in held.gpus:
            name, index = self._of_gpu[gpu]
            found.setdefault(name, []).append(index)
        return found

    def allocation(self, attempt: AttemptRow) -> Allocation | None:
        """Return the attempt's GPUs by number; None if one of them no longer exists."""
        gpus = []
        for name, indices in attempt.gpus_by_node.items():
            if name not in self._first or max(indices) >= self._size[name]:
                return None
            gpus += [self._first[name] + index for index in indices]
        return Allocation(attempt.gpu_type, tuple(sorted(gpus)))
