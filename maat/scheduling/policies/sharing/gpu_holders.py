"""The holders of every GPU, for a policy that grants GPUs by number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from maat.scheduling.cluster import Cluster
from maat.scheduling.job import JobId
from maat.scheduling.placement.free_gpus import FreeGpus
from maat.scheduling.placement.packed import pack
from maat.scheduling.rounds import Grant


class GpuHolders:
    """The holders of every GPU; at first the jobs that stay on the GPUs `held`."""

    def __init__(self, cluster: Cluster, held: Mapping[JobId, Sequence[int]]) -> None:
        self._free = FreeGpus(cluster, places=1)
        self.node_of: list[int] = cluster.gpu_node.tolist()
        self._holders: dict[int, list[JobId]] = {}
        self._gpus: dict[JobId, tuple[int, ...]] = {}
        for job_id, gpus in held.items():
            self.take(job_id, gpus)

    def take(self, job_id: JobId, gpus: Sequence[int]) -> None:
        """Put the job on these GPUs, idle or held by others."""
        self._free.take(gpu for gpu in gpus if gpu not in self._holders)
        self._gpus[job_id] = tuple(gpus)
        for gpu in gpus:
            self._holders.setdefault(gpu, []).append(job_id)

    def node_count(self, job_id: JobId) -> int:
        """Return how many nodes a job's GPUs span."""
        return len({self.node_of[gpu] for gpu in self._gpus.get(job_id, ())})

    def alone(self, job_id: JobId) -> list[int]:
        """Return the GPUs that a job holds alone, ascending."""
        return [gpu for gpu in self._gpus.get(job_id, ()) if len(self._holders[gpu]) == 1]

    def idle(self, gpu_type: str) -> list[int]:
        """Return the idle GPUs of a type, ascending."""
        return [int(gpu) for gpu in self._free.of_type(gpu_type)]

    def packed(self, gpu_type: str, count: int) -> tuple[int, ...] | None:
        """Return idle GPUs on few nodes, without taking them; None if there are too few."""
        gpus = pack(self._free, Grant(gpu_type, count))
        if gpus is None:
            return None
        self._free.give_back(gpus)
        return tuple(sorted(gpus))
