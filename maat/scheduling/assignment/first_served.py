"""Grants to waiting jobs that may not be preempted.

They are decided before the programme is solved (Sia section 3.4). Decides nothing for other jobs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.free_capacity import free_places
from maat.scheduling.job import Job, JobId
from maat.scheduling.matrix import GoodputMatrix
from maat.scheduling.rounds import Grant, RoundInput


def served_first(
    round_input: RoundInput, matrix: GoodputMatrix, value: FloatArray
) -> Mapping[JobId, Grant]:
    """Return grants to jobs that hold nothing and, once they run, keep their GPUs.

    In order of submission, each job gets the GPUs that it asks for, on the type with room where
    that is worth most by `value`, (P,). A job without room competes with all others this round, so
    that a wide job blocks no other.
    """
    found: dict[JobId, Grant] = {}
    waiting = [
        row
        for row, job in enumerate(round_input.jobs)
        if _waits_for_good(job) and job.id not in round_input.pinned
    ]
    for row in sorted(waiting, key=lambda row: (round_input.jobs[row].spec.submitted_at, row)):
        with_found = replace(round_input, pinned={**round_input.pinned, **found})
        grant = _worth_most(with_found, matrix, value, row)
        if grant is not None:
            found[round_input.jobs[row].id] = grant
    return found


def _waits_for_good(job: Job) -> bool:
    return job.allocation is None and not job.spec.preemptible


def _worth_most(
    round_input: RoundInput, matrix: GoodputMatrix, value: FloatArray, row: int
) -> Grant | None:
    pairs, names, free = matrix.pairs, round_input.cluster.type_names, free_places(round_input)
    offered = _as_requested(matrix, row, round_input.jobs[row].spec.requested_gpus)
    for pair in offered[np.argsort(-value[offered], kind="stable")].tolist():
        grant = Grant(
            names[pairs.gpu_type[pair]],
            int(pairs.gpu_count[pair]),
            node_count=int(pairs.node_count[pair]),
        )
        if _fits(round_input, row, grant, free):
            return grant
    return None


def _as_requested(matrix: GoodputMatrix, row: int, requested: int) -> IntArray:
    """Return the job's pairs of the smallest GPU count that is at least `requested`."""
    mine = np.flatnonzero((matrix.pairs.job == row) & (matrix.pairs.gpu_count >= max(requested, 1)))
    counts = matrix.pairs.gpu_count[mine]
    least: IntArray = mine[counts == counts.min(initial=np.iinfo(np.int64).max)]
    return least


def _fits(round_input: RoundInput, row: int, grant: Grant, free: IntArray) -> bool:
    spec, count = round_input.jobs[row].spec, grant.gpu_count
    return all(
        free[r] >= round_input.limits[r].places_of(count)
        for r in round_input.limit_index.of(spec, grant.gpu_type, count)
    )
