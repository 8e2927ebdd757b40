"""What slows a simulated job apart from its step times: partners, nodes and GPUs.

Knows no policy and no placer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import InterferenceError
from maat.simulation.simulated_job import SimulatedJob


class Slowdown(Protocol):
    """A reason why a job is slower than its step times say. Each reason is one class."""

    def slowdown(self, job: SimulatedJob, partners: Sequence[SimulatedJob]) -> float:
        """Return true over nominal seconds of a step of `job`; above 0, 1 for no effect.

        `job` holds GPUs. `partners`: the other jobs that contend for what it contends for.
        """
        ...

    def contended(self, job: SimulatedJob) -> Iterable[int]:
        """Return the resources, by number, for which `job` contends with others; none: ()."""
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

    def contended(self, job: SimulatedJob) -> Iterable[int]:
        """Return its GPUs."""
        return job.allocation.gpus if job.allocation else ()


class SharedNetwork:
    """Distributed jobs on one node slow each other: network contention (Pollux, section 5.3.2).

    A job is distributed if it spans nodes. One that shares any of its nodes with another
    distributed job loses `contention` of its speed (0 to below 1), however many those are. What it
    reports to its policy are its step times without contention, as in the published simulator.
    """

    def __init__(self, cluster: Cluster, contention: float) -> None:
        self._gpu_node: list[int] = cluster.gpu_node.tolist()
        self._slowdown = 1.0 / (1.0 - contention)

    def slowdown(self, job: SimulatedJob, partners: Sequence[SimulatedJob]) -> float:
        return self._slowdown if partners else 1.0

    def contended(self, job: SimulatedJob) -> Iterable[int]:
        """Return the nodes of a distributed job."""
        if len(job.shape) < 2 or job.allocation is None:
            return ()
        return {self._gpu_node[gpu] for gpu in job.allocation.gpus}


class UnequalGpus:
    """GPU scores and the locality penalty, L x max V (PAL, eq. 1).

    The slowest of a job's GPUs sets its pace; several nodes cost the job's own penalty, several
    racks a further one.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._scores = cluster.scores
        self._gpu_rack: list[int] = cluster.gpu_rack.tolist()

    def slowdown(self, job: SimulatedJob, partners: Sequence[SimulatedJob]) -> float:
        """Return L if the job spans nodes (else 1), times the largest score of its GPUs."""
        return self.locality(job) * self.variability(job)

    def locality(self, job: SimulatedJob) -> float:
        """Return L, the job's penalty of several nodes or racks; 1 on a single node."""
        if len(job.shape) < 2 or job.allocation is None:
            return 1.0
        racks = {self._gpu_rack[gpu] for gpu in job.allocation.gpus}
        apart = job.spec.rack_penalty if len(racks) > 1 else 1.0
        return job.spec.locality_penalty * apart

    def variability(self, job: SimulatedJob) -> float:
        """Return the largest score of the job's GPUs; 1 without scores of its class."""
        scores = self._scores.get(job.spec.variability_class or "")
        if scores is None or job.allocation is None:
            return 1.0
        return max(scores[gpu] for gpu in job.allocation.gpus)

    def contended(self, job: SimulatedJob) -> Iterable[int]:
        return ()


def set_paces(jobs: Sequence[SimulatedJob], slowdowns: Sequence[Slowdown]) -> None:
    """Set the pace of each job that holds GPUs: the product of its slowdowns."""
    running = [job for job in jobs if job.allocation is not None]
    for job in running:
        job.pace = 1.0
    for cause in slowdowns:
        at = _contenders(running, cause)
        for job in running:
            job.pace *= cause.slowdown(job, _partners(job, at, cause))


def coupled(
    jobs: Sequence[SimulatedJob], slowdowns: Sequence[Slowdown]
) -> tuple[tuple[SimulatedJob, ...], tuple[tuple[SimulatedJob, ...], ...]]:
    """Split jobs into those that contend with no other, and groups that contend for resources.

    A group is connected directly or through other jobs. Order is kept.
    """
    running = [job for job in jobs if job.allocation is not None]
    group: dict[str, list[SimulatedJob]] = {job.spec.id: [job] for job in jobs}
    for cause in slowdowns:
        for contenders in _contenders(running, cause).values():
            for other in contenders[1:]:
                first, second = group[contenders[0].spec.id], group[other.spec.id]
                if first is not second:
                    first += second
                    group |= {job.spec.id: first for job in second}
    alone = tuple(job for job in jobs if len(group[job.spec.id]) == 1)
    groups = {id(members): tuple(members) for job in jobs if len(members := group[job.spec.id]) > 1}
    return alone, tuple(groups.values())


def _contenders(running: Sequence[SimulatedJob], cause: Slowdown) -> dict[int, list[SimulatedJob]]:
    """Return the jobs that contend for each resource."""
    at: dict[int, list[SimulatedJob]] = {}
    for job in running:
        for resource in cause.contended(job):
            at.setdefault(resource, []).append(job)
    return at


def _partners(
    job: SimulatedJob, at: Mapping[int, Sequence[SimulatedJob]], cause: Slowdown
) -> list[SimulatedJob]:
    resources = cause.contended(job)
    others = {other.spec.id: other for each in resources for other in at[each] if other is not job}
    return list(others.values())
