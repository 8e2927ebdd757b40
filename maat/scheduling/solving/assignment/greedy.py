"""A good answer from prices: greedy acceptance by reduced value, then exchanges.

Proves nothing about its quality; the dual bound does.
"""

from __future__ import annotations

import numpy as np

from maat.scheduling.arrays import BoolArray, FloatArray, IntArray
from maat.scheduling.solving.assignment.prepared import NO_PAIR, PreparedProblem

# Of the largest value: nearer reduced values are a tie, because prices are not more exact.
_TIE = 1e-7
_MAX_PASSES = 60  # of exchanges; a pass without an improvement ends them before
_MIN_FURTHER_PLACES = 1e-3  # divisor of an exchange that needs no further place


def ordered_greedy(problem: PreparedProblem, prices: FloatArray) -> IntArray:
    """Return the pair of every job, NO_PAIR for none, shape (J,).

    Each job takes the pair of largest reduced value that still fits. Jobs come in the order of
    that value, ties by preference. Exchanges then use the places that are left.
    """
    pair_of = np.full(problem.job_count, NO_PAIR)
    unit = _TIE * problem.scale
    reduced = problem.reduced_values(prices)
    level = np.round(reduced * (1 / unit))
    free = problem.capacity.copy()
    open_pair = reduced > -unit
    while True:
        fits = open_pair & _all_limits(problem.usage <= free[:, None])
        best = _best_of_each_job(problem, np.where(fits, reduced, -np.inf))
        if not len(best):
            return improve_by_exchange(problem, pair_of)
        best = best[np.lexsort((problem.rank[best], -level[best]))]
        accepted = best[_fit_in_order(problem.usage[:, best], free)]
        pair_of[problem.job[accepted]] = accepted
        free -= problem.usage[:, accepted].sum(axis=1)
        if len(accepted) == len(best):
            return improve_by_exchange(problem, pair_of)
        open_pair &= (pair_of == NO_PAIR)[problem.job]


def improve_by_exchange(problem: PreparedProblem, pair_of: IntArray) -> IntArray:
    """Replace pairs, (J,), by better ones of the same job while that fits.

    The exchange with the most value per further place comes first.
    """
    pair_of = pair_of.copy()
    for _ in range(_MAX_PASSES):
        value, usage = _value_and_usage(problem, pair_of)
        free = np.maximum(problem.capacity - usage.sum(axis=1), 0.0)
        gain = problem.value - value[problem.job]
        candidate = np.flatnonzero(gain > 0)
        further = problem.usage[:, candidate] - usage[:, problem.job[candidate]]
        fits = _all_limits(further <= free[:, None])
        if not fits.any():
            return pair_of
        candidate, further = candidate[fits], np.maximum(further[:, fits], 0.0)
        score = np.full(len(problem.value), -np.inf)
        score[candidate] = gain[candidate] / np.maximum(further.max(axis=0), _MIN_FURTHER_PLACES)
        best = _best_of_each_job(problem, score)
        best = best[np.argsort(-score[best], kind="stable")]
        extra = np.maximum(problem.usage[:, best] - usage[:, problem.job[best]], 0.0)
        accepted = best[_fit_in_order(extra, free)]
        pair_of[problem.job[accepted]] = accepted
    return pair_of


def total_value(problem: PreparedProblem, pair_of: IntArray) -> float:
    """Return the summed value of the pairs of all jobs."""
    return float(problem.value[pair_of[pair_of != NO_PAIR]].sum())


def _best_of_each_job(problem: PreparedProblem, score: FloatArray) -> IntArray:
    """Return the pair of highest finite score of every job that has one.

    The first of equals.
    """
    top = np.maximum.reduceat(score, problem.starts)
    best = np.flatnonzero((score == top[problem.job]) & (score > -np.inf))
    jobs = problem.job[best]
    first: IntArray = best[jobs != np.concatenate(([-1], jobs[:-1]))]
    return first


def _fit_in_order(usage: FloatArray, free: FloatArray) -> BoolArray:
    """Return which of N requests, (R, N), fit if all before count as granted.

    Every request must fit alone, so the first one is always accepted.
    """
    return _all_limits((usage.cumsum(axis=1) <= free[:, None]) | (usage == 0))


def _all_limits(kept: BoolArray) -> BoolArray:
    every: BoolArray = np.logical_and.reduce(kept, axis=0)
    return every


def _value_and_usage(problem: PreparedProblem, pair_of: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return value (J,) and usage (R, J) of the pairs of all jobs."""
    has = pair_of != NO_PAIR
    return np.where(has, problem.value[pair_of], 0.0), problem.usage[:, pair_of] * has
