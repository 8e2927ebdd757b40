"""The GPUs of each type that jobs could use in a round.

Says nothing of what they get.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from maat.scheduling.arrays import IntArray
from maat.scheduling.job import Job
from maat.scheduling.protocols import Policy
from maat.scheduling.rounds import RoundInput


@dataclass(frozen=True)
class Demand:
    """What J jobs could use of T GPU types.

    `counts`: by job and type, the GPU counts that the job could have, ascending; none where it
    cannot run.
    """

    counts: Sequence[Sequence[Sequence[int]]]
    types: int

    @cached_property
    def least(self) -> IntArray:
        """The fewest GPUs of each job, shape (J, T); zero where it cannot run."""
        return self._of([[c[0] if c else 0 for c in by_type] for by_type in self.counts])

    @cached_property
    def most(self) -> IntArray:
        """The most GPUs of each job, shape (J, T); zero where it cannot run."""
        return self._of([[c[-1] if c else 0 for c in by_type] for by_type in self.counts])

    def further(self, got: IntArray) -> IntArray:
        """Return how many GPUs more each job with some could use next, shape (J, T).

        `got`, (J, T): what jobs have. Zero where a job has none, or could not use more.
        """
        found = np.zeros_like(got)
        for j, t in np.argwhere((got > 0) & (got < self.most)).tolist():
            counts, has = self.counts[j][t], int(got[j, t])
            found[j, t] = counts[bisect_right(counts, has)] - has
        return found

    def _of(self, rows: list[list[int]]) -> IntArray:
        return np.array(rows, dtype=np.int64).reshape(len(self.counts), self.types)


def demand_of(round_input: RoundInput, policy: Policy | None) -> Demand:
    """Return what every job could use of a round by a policy; None for one that chooses counts.

    If the policy does not choose GPU counts, that is what a job requests. If it chooses, it may
    name the counts (`Policy.useful_counts`); else they are all between `min_gpus` and `max_gpus`.
    """
    types = len(round_input.cluster.type_names)
    named = getattr(policy, "useful_counts", None)
    if named is not None:
        return Demand(named(round_input), types)
    return Demand(declared_counts(round_input, chooses=chooses_counts(policy)), types)


def chooses_counts(policy: Policy | None) -> bool:
    """Return whether a policy chooses GPU counts, or gives every job what it requests."""
    return policy is None or bool(getattr(policy, "chooses_gpu_counts", False))


def declared_counts(round_input: RoundInput, *, chooses: bool) -> list[list[Sequence[int]]]:
    """Return the GPU counts that jobs declare, by job and type.

    `chooses`: whether the policy chooses GPU counts.
    """
    cluster = round_input.cluster
    usable = list(zip(cluster.type_names, cluster.usable_gpus.tolist(), strict=True))
    return [
        [
            _counts(job, name, most, chooses=chooses) if job.spec.may_use(name) else ()
            for name, most in usable
        ]
        for job in round_input.jobs
    ]


def _counts(job: Job, gpu_type: str, usable: int, *, chooses: bool) -> Sequence[int]:
    spec, unit = job.spec, job.spec.replica_gpus(gpu_type)
    if spec.is_rigid or not chooses:
        asked = spec.requested_gpus
        return (asked,) if asked <= usable and asked % unit == 0 else ()
    least = -(-spec.min_gpus // unit) * unit
    most = min(usable, usable if spec.max_gpus is None else spec.max_gpus)
    return range(least, most + 1, unit)


def held_by_type(round_input: RoundInput) -> IntArray:
    """Return the GPUs that each job holds of each type, shape (J, T)."""
    cluster = round_input.cluster
    held = np.zeros((len(round_input.jobs), len(cluster.type_names)), dtype=np.int64)
    for row, job in enumerate(round_input.jobs):
        if job.allocation is not None:
            held[row, cluster.type_index[job.allocation.gpu_type]] = job.allocation.gpu_count
    return held
