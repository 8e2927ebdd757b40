"""Small jobs and rounds from which tests of the core start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from maat.scheduling.belief import Belief, GradientStatistics, TypeBelief
from maat.scheduling.cluster import Cluster
from maat.scheduling.fitting import Sample
from maat.scheduling.job import Allocation, Job, JobSpec, MemoryLimits
from maat.scheduling.limits import Limit, capacity_limits
from maat.scheduling.pins import pinned_grants
from maat.scheduling.rounds import RoundInput

ALL_TYPES = ("t4", "rtx", "a100")


def spec(job_id: str = "job", **changes: Any) -> JobSpec:
    """An adaptive job that may use three types and batches of 32 to 1024 samples."""
    values: dict[str, Any] = {
        "model": "m",
        "submitted_at": 0.0,
        "work": 1e6,
        "initial_batch_size": 32,
        "max_batch_size": 1024,
        "memory": {name: MemoryLimits(1, 256) for name in ALL_TYPES},
        **changes,
    }
    return JobSpec(id=job_id, **values)


def type_belief(alpha: float, *, replicas: Sequence[int] = (1,)) -> TypeBelief:
    """A pass takes `alpha` + 0.001 m seconds, synchronisation a tenth of `alpha`.

    Measured on these replica counts.
    """
    parameters = np.array([alpha, 0.001, alpha / 10, 1e-8, alpha / 10, 1e-8, 1.0])
    return TypeBelief(tuple(Sample(1, k, 32, alpha + 0.032, 0.0) for k in replicas), parameters)


def belief(peak: int = 64, **alphas: float) -> Belief:
    """Several replicas measured on each named type."""
    return Belief(
        {name: type_belief(alpha, replicas=(1, 2)) for name, alpha in alphas.items()},
        GradientStatistics(1.0, 10.0),
        peak,
    )


def job(
    job_spec: JobSpec | None = None,
    known: Belief | None = None,
    held: Sequence[int] = (),
    **changes: Any,
) -> Job:
    """A job that holds these GPUs, whose type round_of fills in."""
    allocation = Allocation("", tuple(held)) if held else None
    return Job(
        job_spec or spec(),
        known if known is not None else Belief(),
        1e6,
        allocation=allocation,
        **changes,
    )


def round_of(
    cluster: Cluster | str, *jobs: Job, limits: Sequence[Limit] = (), **changes: Any
) -> RoundInput:
    """A round as the loop would make it: standing limits, the given ones, and pins."""
    whole = Cluster.parse(cluster) if isinstance(cluster, str) else cluster
    held = tuple(_typed(j, whole) for j in jobs)
    values: dict[str, Any] = {
        "now": 100_000.0,
        "round_number": 1,
        "round_seconds": 60.0,
        "pinned": pinned_grants(held, whole),
        **changes,
    }
    return RoundInput(
        jobs=held, cluster=whole, limits=capacity_limits(whole) + tuple(limits), **values
    )


def _typed(held: Job, cluster: Cluster) -> Job:
    if held.allocation is None:
        return held
    kind = cluster.type_names[cluster.gpu_type_of[held.allocation.gpus[0]]]
    return replace(held, allocation=Allocation(kind, held.allocation.gpus))
