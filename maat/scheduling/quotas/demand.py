"""The GPUs of each type that jobs could use, as arrays.

Says nothing of what they get.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maat.scheduling.arrays import IntArray
from maat.scheduling.job import Job
from maat.scheduling.rounds import RoundInput


@dataclass(frozen=True)
class Demand:
    """What J jobs could use of T GPU types.

    `least`, `most`: shape (J, T), GPUs of one job; both zero where it cannot run.
    """

    least: IntArray
    most: IntArray


def demand_of(round_input: RoundInput, *, chooses_counts: bool) -> Demand:
    """Return what every job could use.

    `chooses_counts`: whether the policy chooses GPU counts. If not, a job uses what it requests.
    """
    cluster = round_input.cluster
    least = np.zeros((len(round_input.jobs), len(cluster.type_names)), dtype=np.int64)
    most = np.zeros_like(least)
    usable = cluster.usable_gpus.tolist()
    for row, job in enumerate(round_input.jobs):
        for t, name in enumerate(cluster.type_names):
            if job.spec.may_use(name):
                least[row, t], most[row, t] = _counts(job, name, usable[t], chooses_counts)
    return Demand(least, most)


def _counts(job: Job, gpu_type: str, usable: int, chooses_counts: bool) -> tuple[int, int]:
    spec, unit = job.spec, job.spec.replica_gpus(gpu_type)
    if spec.is_rigid or not chooses_counts:
        asked = spec.requested_gpus
        return (asked, asked) if asked <= usable and asked % unit == 0 else (0, 0)
    low = -(-spec.min_gpus // unit) * unit
    high = min(usable, usable if spec.max_gpus is None else spec.max_gpus) // unit * unit
    return (low, high) if low <= high else (0, 0)


def held_by_type(round_input: RoundInput) -> IntArray:
    """Return the GPUs that each job holds of each type, shape (J, T)."""
    cluster = round_input.cluster
    held = np.zeros((len(round_input.jobs), len(cluster.type_names)), dtype=np.int64)
    for row, job in enumerate(round_input.jobs):
        if job.allocation is not None:
            held[row, cluster.type_index[job.allocation.gpu_type]] = job.allocation.gpu_count
    return held
