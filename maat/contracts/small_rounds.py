"""Small rounds of rigid jobs whose step times are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from maat.scheduling.belief import Belief, GradientStatistics, TypeBelief
from maat.scheduling.cluster import Cluster
from maat.scheduling.fitting import Sample
from maat.scheduling.job import Job, JobSpec, MemoryLimits
from maat.scheduling.limits import capacity_limits
from maat.scheduling.rounds import RoundInput
from maat.vocabulary import Adaptivity


def rigid_job(job_id: str, gpus: int, *, step_seconds: float, **changes: Any) -> Job:
    """Return a job that asks for so many T4 and no other number.

    A pass takes `step_seconds` + 0.001 m seconds for m samples, synchronisation a tenth.
    """
    values: dict[str, Any] = {
        "model": "m",
        "submitted_at": 0.0,
        "work": 1e6,
        "initial_batch_size": 32,
        "max_batch_size": 1024,
        "memory": {"t4": MemoryLimits(1, 256)},
        "adaptivity": Adaptivity.RIGID,
        "gpu_count": gpus,
        "batch_size": 32 * gpus,
        "gpu_types": ("t4",),
        **changes,
    }
    alpha = step_seconds
    parameters = np.array([alpha, 0.001, alpha / 10, 1e-8, alpha / 10, 1e-8, 1.0])
    samples = tuple(Sample(1, k, 32, alpha + 0.032, 0.0) for k in (1, 2))
    known = {"t4": TypeBelief(samples, parameters)}
    return Job(JobSpec(id=job_id, **values), Belief(known, GradientStatistics(1.0, 10.0), 64), 1e6)


def round_of(cluster: Cluster, jobs: Sequence[Job], *, now: float = 0.0) -> RoundInput:
    """Return the first round of these jobs, none of which holds a GPU."""
    return RoundInput(
        now=now,
        round_number=1,
        round_seconds=60.0,
        jobs=tuple(jobs),
        cluster=cluster,
        limits=capacity_limits(cluster),
    )
