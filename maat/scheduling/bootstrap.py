"""Throughput on a GPU type on which a job never ran, from another type.

Sia section 3.2, eq. 1. A projection returns the type whose model stands in, and a factor; None if
no type is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from maat.scheduling.job import Job
from maat.scheduling.throughput import pass_seconds


class Projection(Protocol):
    """Returns the type whose model stands in for a type, and a factor on its goodput.

    The arguments are the job, the type, and all types in the cluster's order. None if no type is
    known.
    """

    def __call__(
        self, job: Job, gpu_type: str, type_names: Sequence[str], /
    ) -> tuple[str, float] | None: ...


def project_by_profile(
    job: Job, gpu_type: str, type_names: Sequence[str], /
) -> tuple[str, float] | None:
    """Apply the paper's rule: scaling comes from one type, speed from each type.

        est-xput_B(N) = xput_B(1) / xput_A(1) * xput_A(N)

    A type with samples of several replicas uses its own model. Otherwise the type A with the most
    replicas measured lends its scaling, times the ratio of one-replica throughputs. If no type was
    measured on several replicas, a type's own one-GPU model scales perfectly.
    """
    own = job.belief.by_type.get(gpu_type)
    if own is not None and own.knows_synchronisation:
        return gpu_type, 1.0
    lender = _most_scaled(job, type_names)
    if lender is not None and own is not None:
        return lender, _one_replica_ratio(job, gpu_type, lender)
    if own is not None:
        return gpu_type, 1.0
    return (lender, 1.0) if lender is not None else None


class ProjectByConstant:
    """The published simulator's rule: own model, else a constant ratio.

    A type with any sample uses its own model. Otherwise the first type with a sample stands in,
    times a constant ratio of the one-GPU throughputs of this job's model. `reference`: model ->
    type -> samples/s, types in the order of the rule.
    """

    def __init__(self, reference: Mapping[str, Mapping[str, float]]) -> None:
        self._reference = reference

    def __call__(
        self, job: Job, gpu_type: str, type_names: Sequence[str], /
    ) -> tuple[str, float] | None:
        if gpu_type in job.belief.by_type:
            return gpu_type, 1.0
        reference = self._reference[job.spec.model]
        for other in reference:
            if other in job.belief.by_type and other in type_names:
                return other, reference[gpu_type] / reference[other]
        return None


def _most_scaled(job: Job, type_names: Sequence[str]) -> str | None:
    best, most = None, 1
    for name in type_names:
        belief = job.belief.by_type.get(name)
        if (
            belief is not None
            and belief.knows_synchronisation
            and belief.largest_replica_count > most
        ):
            best, most = name, belief.largest_replica_count
    return best


def _one_replica_ratio(job: Job, gpu_type: str, other: str) -> float:
    """Return xput_B(1) / xput_A(1) at the largest per-GPU batch that both types hold."""
    memory = job.spec.memory
    batch = min(memory[gpu_type].largest_per_gpu, memory[other].largest_per_gpu)
    at = np.asarray(float(batch))
    mine, theirs = (
        float(pass_seconds(job.belief.by_type[name].parameters, at)) for name in (gpu_type, other)
    )
    return theirs / mine
