"""What slows a simulated job besides its own step times: who shares its GPUs, which GPUs these are. Knows no policy and no placer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from maat.simulation.adaptive_job import SimulatedJob


class Condition(Protocol):
    """One reason for which a job is slower than its step times say. A further reason is one class."""

    def slowdown(self, job: SimulatedJob, partners: Sequence[SimulatedJob]) -> float:
        """True over nominal seconds of a step of `job`, which holds GPUs; above 0, 1 for no effect. `partners`: who shares any of its GPUs."""
        ...


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
