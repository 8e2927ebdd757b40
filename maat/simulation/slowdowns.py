"""What slows a simulated job besides its own step times: who shares its GPUs, which GPUs these are. Knows no policy and no placer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import InterferenceError
from maat.simulation.simulated_job import SimulatedJob


class Slowdown(Protocol):
    """One reason for which a job is slower than its step times say. A further reason is one class."""

    def slowdown(self, job: SimulatedJob, partners: Sequence[SimulatedJob]) -> float:
        """True over nominal seconds of a step of `job`, which holds GPUs; above 0, 1 for no effect. `partners`: who shares any of its GPUs."""
        ...


@dataclass(frozen=True)
class SharedGpus:
    """Jobs on the same GPU slow each other. `interference`: (victim, partner, the victim's GPU count) -> slowdown.

    Synchronous training goes at the pace of its slowest GPU: the most over the job's GPUs, on each the product over the partners that hold
    it. A partner counts from the moment it holds the GPU, its start included. Raises InterferenceError where the table says that two models do
    not fit on one GPU, KeyError for a pair that it does not know.
    """

    interference: Mapping[tuple[str, str, int], float]

    def slowdown(self, job: SimulatedJob, partners: Sequence[SimulatedJob]) -> float:
        held = job.allocation.gpus if job.allocation else ()
        on_gpu = dict.fromkeys(held, 1.0)
        for partner in partners:
            xi = self.interference[
                job.spec.interference_name, partner.spec.interference_name, len(held)
            ]
            if math.isinf(xi):
                raise InterferenceError(
                    f"lets {job.spec.model} and {partner.spec.model} share a GPU, on which they do not fit",
                    field="jobs_per_gpu",
                    remedy="Use a policy that shares by the interference table, such as sjf-bsbf, or one job per GPU.",
                )
            for gpu in partner.allocation.gpus if partner.allocation else ():
                if gpu in on_gpu:
                    on_gpu[gpu] *= xi
        return max(on_gpu.values(), default=1.0)


class UnequalGpus:
    """What PAL schedules around (eq. 1): the slowest of a job's GPUs sets its pace, and nodes apart cost the job's own penalty: L x max V."""

    def __init__(self, cluster: Cluster) -> None:
        self._scores = cluster.scores

    def slowdown(self, job: SimulatedJob, partners: Sequence[SimulatedJob]) -> float:
        """L of the job's declaration if it spans nodes, times the largest score of its GPUs for its class."""
        spec = job.spec
        apart = spec.locality_penalty if len(job.shape) > 1 else 1.0
        scores = self._scores.get(spec.variability_class or "")
        return (
            apart
            if scores is None or job.allocation is None
            else apart * max(scores[gpu] for gpu in job.allocation.gpus)
        )


def set_paces(jobs: Sequence[SimulatedJob], slowdowns: Sequence[Slowdown]) -> None:
    """Give every job that holds GPUs the product of the slowdowns that its surroundings cause."""
    running = [job for job in jobs if job.allocation is not None]
    on_gpu = _by_gpu(running)
    for job in running:
        job.pace = 1.0
        partners = _partners(job, on_gpu)
        for cause in slowdowns:
            job.pace *= cause.slowdown(job, partners)


def coupled(
    jobs: Sequence[SimulatedJob],
) -> tuple[tuple[SimulatedJob, ...], tuple[tuple[SimulatedJob, ...], ...]]:
    """Jobs that share no GPU with anybody, and groups of jobs that share some, directly or through one another; in their order."""
    on_gpu = _by_gpu([job for job in jobs if job.allocation is not None])
    group: dict[str, list[SimulatedJob]] = {job.spec.id: [job] for job in jobs}
    for holders in on_gpu.values():
        for other in holders[1:]:
            first, second = group[holders[0].spec.id], group[other.spec.id]
            if first is not second:
                first += second
                group |= {job.spec.id: first for job in second}
    alone = tuple(job for job in jobs if len(group[job.spec.id]) == 1)
    groups = {id(members): tuple(members) for job in jobs if len(members := group[job.spec.id]) > 1}
    return alone, tuple(groups.values())


def _by_gpu(running: Sequence[SimulatedJob]) -> dict[int, list[SimulatedJob]]:
    on_gpu: dict[int, list[SimulatedJob]] = {}
    for job in running:
        for gpu in job.allocation.gpus if job.allocation else ():
            on_gpu.setdefault(gpu, []).append(job)
    return on_gpu


def _partners(
    job: SimulatedJob, on_gpu: Mapping[int, Sequence[SimulatedJob]]
) -> list[SimulatedJob]:
    gpus = job.allocation.gpus if job.allocation else ()
    others = {other.spec.id: other for gpu in gpus for other in on_gpu[gpu] if other is not job}
    return list(others.values())
