"""A good answer from prices: ordered acceptance, then exchanges for better pairs. Not responsible for how good it is: the bound says."""

from __future__ import annotations

import numpy as np

from maat.scheduling.arrays import BoolArray, FloatArray, IntArray
from maat.scheduling.solving.assignment_programme import Programme

NOTHING = -1  # the pair of a job that gets none
_SAME = 1e-7  # reduced values nearer than this (as a share of the largest value) are a tie: prices are not more exact than that
_MOST_PASSES = 60


def ordered_greedy(programme: Programme, prices: FloatArray) -> IntArray:
    """The pair of every job, NOTHING for none, shape (J,).

    Jobs take their pair of largest reduced value that still fits, in the order of reduced value, ties by preference; what is left goes
    to exchanges.
    """
    held = np.full(programme.jobs, NOTHING)
    unit = _SAME * programme.scale
    reduced = programme.reduced(prices)
    level = np.round(reduced * (1 / unit))
    free = programme.capacity.copy()
    open_pair = reduced > -unit
    while True:
        fits = open_pair & _all_rows(programme.usage <= free[:, None])
        best = _best_of_each_job(programme, np.where(fits, reduced, -np.inf))
        if not len(best):
            return improve(programme, held)
        best = best[np.lexsort((programme.rank[best], -level[best]))]
        accepted = best[_accept(programme.usage[:, best], free)]
        held[programme.job[accepted]] = accepted
        free -= programme.usage[:, accepted].sum(axis=1)
        if len(accepted) == len(best):
            return improve(programme, held)
        open_pair &= (held == NOTHING)[programme.job]


def improve(programme: Programme, held: IntArray) -> IntArray:
    """Exchange pairs for better ones of the same job while that fits: the most value per further place first."""
    held = held.copy()
    for _ in range(_MOST_PASSES):
        value, usage = _holdings(programme, held)
        free = np.maximum(programme.capacity - usage.sum(axis=1), 0.0)
        gain = programme.value - value[programme.job]
        candidate = np.flatnonzero(gain > 0)
        further = programme.usage[:, candidate] - usage[:, programme.job[candidate]]
        fits = _all_rows(further <= free[:, None])
        if not fits.any():
            return held
        candidate, further = candidate[fits], np.maximum(further[:, fits], 0.0)
        score = np.full(len(programme.value), -np.inf)
        score[candidate] = gain[candidate] / np.maximum(further.max(axis=0), 1e-3)
        best = _best_of_each_job(programme, score)
        best = best[np.argsort(-score[best], kind="stable")]
        extra = np.maximum(programme.usage[:, best] - usage[:, programme.job[best]], 0.0)
        accepted = best[_accept(extra, free)]
        held[programme.job[accepted]] = accepted
    return held


def worth(programme: Programme, held: IntArray) -> float:
    """Summed value of what jobs hold."""
    return float(programme.value[held[held != NOTHING]].sum())


def _best_of_each_job(programme: Programme, score: FloatArray) -> IntArray:
    """The pair with the highest score of every job that has a finite one, the first of equals."""
    top = np.maximum.reduceat(score, programme.starts)
    best = np.flatnonzero((score == top[programme.job]) & (score > -np.inf))
    jobs = programme.job[best]
    first: IntArray = best[jobs != np.concatenate(([-1], jobs[:-1]))]
    return first


def _accept(usage: FloatArray, free: FloatArray) -> BoolArray:
    """Which requests, (R, N) in order, fit when counted as if all before them had been granted; the first always does."""
    return _all_rows((usage.cumsum(axis=1) <= free[:, None]) | (usage == 0))


def _all_rows(kept: BoolArray) -> BoolArray:
    every: BoolArray = np.logical_and.reduce(kept, axis=0)
    return every


def _holdings(programme: Programme, held: IntArray) -> tuple[FloatArray, FloatArray]:
    """Value (J,) and usage (R, J) of what jobs hold."""
    has = held != NOTHING
    return np.where(has, programme.value[held], 0.0), programme.usage[:, held] * has
