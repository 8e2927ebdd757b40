"""What slows a simulated job apart from its step times: partners and GPUs.

Knows no policy and no placer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import InterferenceError
from maat.simulation.simulated_job import SimulatedJob


class Slowdown(Protocol):
    """A reason why a job is slower than its step times say. Each reason is one class."""

    def slowdown(self, job: SimulatedJob, partners: Sequence[SimulatedJob]) -> float:
        """Return true over nominal seconds of a step of `job`; above 0, 1 for no effect.

        `job` holds GPUs. `partners`: the jobs that share any of them.
        """
        ...


@dataclass(frozen=True)
class SharedGpus:
    """Jobs on the same GPU slow each other (interference).

    `interference`: (victim, partner, the victim's GPU count) -> slowdown. Synchronous training runs
    at the pace of its slowest GPU, so the slowdown is the largest over the job's GPUs, on each the
    product over its partners there. A partner counts as soon as it holds the GPU, also while it
    starts. Raises InterferenceError if the table says that two models do not fit on one GPU,
    KeyError for a pair that it lacks.
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
                    f"lets {job.spec.model} and {partner.spec.model} share a GPU, "
                    "on which they do not fit",
                    field="jobs_per_gpu",
                    remedy="Use a policy that shares by the interference table, "
                    "such as sjf-bsbf, or one job per GPU.",
                )
            for gpu in partner.allocation.gpus if partner.allocation else ():
                if gpu in on_gpu:
                    on_gpu[gpu] *= xi
        return max(on_gpu.values(), default=1.0)


class UnequalGpus:
    """GPU scores and the locality penalty, L x max V (PAL, eq. 1).

    The slowest of a job's GPUs sets its pace; several nodes cost the job's own penalty.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._scores = cluster.scores

    def slowdown(self, job: SimulatedJob, partners: Sequence[SimulatedJob]) -> float:
        """Return L if the job spans nodes (else 1), times the largest score of its GPUs."""
        spec = job.spec
        apart = spec.locality_penalty if len(job.shape) > 1 else 1.0
        scores = self._scores.get(spec.variability_class or "")
        return (
            apart
            if scores is None or job.allocation is None
            else apart * max(scores[gpu] for gpu in job.allocation.gpus)
        )


def set_paces(jobs: Sequence[SimulatedJob], slowdowns: Sequence[Slowdown]) -> None:
    """Set the pace of each job that holds GPUs: the product of its slowdowns."""
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
    """Split jobs into those that share no GPU, and groups that share GPUs.

    A group is connected directly or through other jobs. Order is kept.
    """
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
