"""Which jobs a neighbourhood search may move. exact_search.py does the search."""

from __future__ import annotations

import numpy as np

from maat.scheduling.arrays import BoolArray, FloatArray, IntArray
from maat.scheduling.solving.assignment.prepared import NO_PAIR, PreparedProblem

_MAX_JOBS = 64  # with the cheapest changes; half as many more jobs are those that lose most
_JOBS_PER_CHANGE = 5  # of those: more jobs with the same change of places add little


def movable_jobs(
    problem: PreparedProblem,
    around: IntArray,
    near: BoolArray,
    empty: BoolArray,
    pair_loss: FloatArray,
    empty_loss: FloatArray,
) -> BoolArray:
    """Return which jobs may differ from the answer `around`, shape (J,).

    These are the jobs with the cheapest changes, a few for each distinct change of places, and
    those that lose most now. `near`, (P,), and `empty`, (J,): which pairs, and which jobs without a
    pair, are within the budget. `pair_loss`: (P,). `empty_loss`: (J,).
    """
    usage = problem.usage[:, around] * (around != NO_PAIR)
    change = np.concatenate((problem.usage - usage[:, problem.job], -usage), axis=1)
    job = np.concatenate((problem.job, np.arange(problem.job_count)))
    loss = np.concatenate((pair_loss, empty_loss))
    loss_now = np.where(around == NO_PAIR, empty_loss, pair_loss[around])
    candidate = np.flatnonzero(np.concatenate((near, empty)) & (change != 0).any(axis=0))
    further = loss[candidate] - loss_now[job[candidate]]
    few = _cheapest_per_group(further, _change_key(change[:, candidate]))
    movable = np.zeros(problem.job_count, dtype=bool)
    movable[list(dict.fromkeys(job[candidate[few]].tolist()))[:_MAX_JOBS]] = True
    movable[np.argsort(-loss_now, kind="stable")[: _MAX_JOBS // 2]] = True
    return movable


def _change_key(change: FloatArray) -> FloatArray:
    """Return a key of each of N changes of places, (R, N).

    Equal changes have equal keys. A key is the inner product with the square roots of 2, 3, 4, ...
    Sums of small whole multiples of these roots are rarely equal, so that different changes rarely
    share a key. Two that do share one quota of jobs; that may cost quality, never correctness.
    """
    roots = np.sqrt(np.arange(2, len(change) + 2))
    key: FloatArray = roots @ change
    return key


def _cheapest_per_group(cost: FloatArray, group: FloatArray) -> IntArray:
    """Return the indices of the few cheapest of each group, cheapest first."""
    order = np.lexsort((cost, group))
    first = np.flatnonzero(np.diff(group[order], prepend=np.nan) != 0)
    position = np.arange(len(order)) - np.repeat(first, np.diff(np.append(first, len(order))))
    few = order[position < _JOBS_PER_CHANGE]
    cheapest_first: IntArray = few[np.argsort(cost[few], kind="stable")]
    return cheapest_first
