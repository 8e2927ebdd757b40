"""The least total completion time of jobs on unrelated machines, as a matching.

Knows no jobs and no GPUs, only times.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from maat.scheduling.arrays import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Matching:
    """The kind of machine of each of J jobs, shape (J,), -1 for none; and the total completion.

    `total`: seconds from now, summed over the jobs that have a machine.
    """

    kind: IntArray
    total: float


def least_total_completion(seconds: FloatArray, machines: IntArray) -> Matching:
    """Match jobs to machines and positions so that their completion times add up to the least.

    The job that is the k-th from the last on its machine delays k jobs, itself included: it costs
    k times its seconds there. Each pair of a machine and a position takes one job at most, so a
    matching of least cost is optimal (Horn 1973; Bruno, Coffman and Sethi 1974; AlloX section 3.1).
    Machines of one kind are alike, so none has more than ceil(J / machines) jobs. On a machine the
    jobs then run shortest first.

    Args:
        seconds: Of job j on a machine of kind t, shape (J, T); infinite where it cannot run.
        machines: How many there are of each kind, shape (T,).
    """
    kind = np.full(len(seconds), -1, dtype=np.int64)
    rows = np.flatnonzero(np.isfinite(seconds[:, machines > 0]).any(axis=1))
    if not len(rows):
        return Matching(kind, 0.0)
    copies = [
        (t, position)
        for t, count in enumerate(machines.tolist())
        if count
        for position in range(1, -(-len(rows) // count) + 1)
        for _ in range(min(count, len(rows)))
    ]
    of_kind, position = (np.array(axis, dtype=np.int64) for axis in zip(*copies, strict=True))
    cost = seconds[np.ix_(rows, of_kind)] * position
    matched, columns = linear_sum_assignment(cost)
    kind[rows[matched]] = of_kind[columns]
    return Matching(kind, float(cost[matched, columns].sum()))
