"""What slows a simulated job besides its own step times: who shares its GPUs, which GPUs these are. Knows no policy and no placer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from maat.scheduling.cluster import Cluster
from maat.simulation.adaptive_job import SimulatedJob


class Condition(Protocol):
    """One reason for which a job is slower than its step times say. A further reason is one class."""

    def slowdown(self, job: SimulatedJob, partners: Sequence[SimulatedJob]) -> float:
        """True over nominal seconds of a step of `job`, which holds GPUs; above 0, 1 for no effect. `partners`: who shares any of its GPUs."""
        ...


class UnequalGpus:
    """What PAL schedules around (eq. 1): the slowest of a job's GPUs sets its pace, and nodes apart cost the job's own penalty: L x max V."""

    def __init__(self, cluster: Cluster) -> None:
        self._scores = cluster.scores

    def slowdown(self, job: SimulatedJob, partners: Sequence[SimulatedJob]) -> float:
        """L of the job's declaration if it spans nodes, times the largest score of its GPUs for its class."""
        spec = job.spec
        apart = spec.locality_penalty if len(job.shape) > 1 else 1.0
        scores = self._scores.get(spec.variability_class or "")
        return apart if scores is None or job.allocation is None else apart * max(scores[gpu] for gpu in job.allocation.gpus)


def set_paces(jobs: Sequence[SimulatedJob], conditions: Sequence[Condition]) -> None:
    """Give every job that holds GPUs the product of the slowdowns that its surroundings cause."""
    on_gpu: dict[int, list[SimulatedJob]] = {}
    running = [job for job in jobs if job.allocation is not None]
    for job in running:
        for gpu in job.allocation.gpus if job.allocation else ():
            on_gpu.setdefault(gpu, []).append(job)
    for job in running:
        job.pace = 1.0
        partners = _partners(job, on_gpu)
        for condition in conditions:
            job.pace *= condition.slowdown(job, partners)


def _partners(job: SimulatedJob, on_gpu: dict[int, list[SimulatedJob]]) -> list[SimulatedJob]:
    gpus = job.allocation.gpus if job.allocation else ()
    others = {other.spec.id: other for gpu in gpus for other in on_gpu[gpu] if other is not job}
    return list(others.values())
