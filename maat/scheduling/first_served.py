"""Who is served before the programme is solved: jobs that may not be preempted and still wait (Sia section 3.4). Decides nobody else's GPUs."""

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
    """Grants of jobs that hold nothing and, once they do, keep it to their end.

    In order of submission each gets the GPUs that it asks for, on the type on which that is worth most, `value` (P,), among those with room. Who
    finds no room competes with everybody else this round, so that a wide job holds nobody back.
    """
    found: dict[JobId, Grant] = {}
    waiting = [
        row
        for row, job in enumerate(round_input.jobs)
        if _waits_for_good(job) and job.id not in round_input.pinned
    ]
    for row in sorted(waiting, key=lambda row: (round_input.jobs[row].spec.submitted_at, row)):
        beside = replace(round_input, pinned={**round_input.pinned, **found})
        grant = _worth_most(beside, matrix, value, row)
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
    """The pairs of a job with the fewest GPUs that are no fewer than it asks for."""
    mine = np.flatnonzero((matrix.pairs.job == row) & (matrix.pairs.gpu_count >= max(requested, 1)))
    counts = matrix.pairs.gpu_count[mine]
    least: IntArray = mine[counts == counts.min(initial=np.iinfo(np.int64).max)]
    return least


def _fits(round_input: RoundInput, row: int, grant: Grant, free: IntArray) -> bool:
    spec, count = round_input.jobs[row].spec, grant.gpu_count
    return all(
        free[r] >= count
        for r, limit in enumerate(round_input.limits)
        if limit.counts(spec, grant.gpu_type, count)
    )
