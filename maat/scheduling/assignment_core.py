"""The exact part: among pairs that lose little against the prices, the best combination, by dynamic programming over places left.

With loss_ij = max(0, best_i) - rc_ij, every answer is worth  D(l) - sum_i loss_i - l . (places left unused).  So an answer worth more than
D - budget takes only pairs of loss <= budget, and partial answers that already lost more than the budget can be dropped. Either the best
answer within the budget is found, or none exists and D - budget is a better bound than D. Not responsible for choosing the budget.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.assignment_greedy import NOTHING
from maat.scheduling.prices import Programme

WIDTH = 20_000  # most partial answers kept per job while there is work left
NARROW = 500  # and after that, so that a search ends with an answer all the same
_LARGEST_KEY = 2**62


@dataclass(frozen=True)
class CoreAnswer:
    """`held`: the best answer found (J,), None for none; `loss`: what it loses against the bound. `complete`: nothing within the budget
    was left out, so that the answer is the best there is, or none within the budget exists. `work`: partial answers looked at."""

    held: IntArray | None
    loss: float
    complete: bool
    work: int


@dataclass(frozen=True)
class _Option:
    """What one job may take within the budget: N pairs (NOTHING for none), further places over its least (R, N), losses (N,)."""

    job: int
    pairs: IntArray
    usage: IntArray
    loss: FloatArray


@dataclass(frozen=True)
class _Core:
    """`settled`: jobs with one option hold it, (J,). `free`: places left for further places, (R,)."""

    settled: IntArray
    options: list[_Option]
    free: IntArray


@dataclass(frozen=True)
class _Bounds:
    """What a partial answer may use, (R,), what an unused place costs, (R,), and what may be lost in all."""

    free: IntArray
    prices: FloatArray
    budget: float


@dataclass(frozen=True)
class _Partial:
    """N partial answers: places used (R, N) and loss so far (N,); where each came from and which option it took."""

    usage: IntArray
    loss: FloatArray
    parent: IntArray
    choice: IntArray


def search(programme: Programme, prices: FloatArray, *, budget: float, most_work: int) -> CoreAnswer:
    """The best answer that loses at most `budget` against the bound at these prices."""
    core = _core(programme, prices, budget)
    if (core.free < 0).any():
        return CoreAnswer(None, np.inf, complete=True, work=0)
    bounds = _Bounds(core.free, prices, budget)
    to_come = _to_come(core)
    strides = _strides(core.free, to_come[0])
    partial = _Partial(np.zeros((len(prices), 1), dtype=np.int64), np.zeros(1), np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))
    trail: list[_Partial] = []
    complete, work = True, 0
    for option, still in zip(core.options, to_come[1:], strict=True):
        work += len(partial.loss) * len(option.pairs)
        partial, estimate = _extend(partial, option, bounds, still)
        partial, estimate = _distinct(partial, estimate, strides)
        width = WIDTH if work < most_work else NARROW
        if len(partial.loss) > width:
            complete = False
            partial = _take(partial, np.sort(np.argpartition(estimate, width)[:width]))
        if not len(partial.loss):
            return CoreAnswer(None, np.inf, complete, work)
        trail.append(partial)
    loss = partial.loss + prices @ (core.free[:, None] - partial.usage)
    best = int(loss.argmin())
    if loss[best] > budget:
        return CoreAnswer(None, np.inf, complete, work)
    return CoreAnswer(_traced(core, trail, best), float(loss[best]), complete, work)


def _core(programme: Programme, prices: FloatArray, budget: float) -> _Core:
    """Jobs with one option within the budget are settled; the others' options are what is searched."""
    reduced = programme.reduced(prices)
    empty_loss = np.maximum(np.maximum.reduceat(reduced, programme.starts), 0.0)
    pair_loss = empty_loss[programme.job] - reduced
    near = np.flatnonzero(pair_loss <= budget)
    jobs = programme.job[near]
    count = np.bincount(jobs, minlength=programme.jobs) + (empty_loss <= budget)
    settled = np.full(programme.jobs, NOTHING)
    alone = near[count[jobs] == 1]
    settled[programme.job[alone]] = alone
    free = (programme.capacity - programme.usage[:, alone].sum(axis=1)).astype(np.int64)
    open_pairs = near[count[jobs] > 1]
    bounds = np.flatnonzero(np.diff(programme.job[open_pairs], prepend=-1, append=programme.jobs))
    options = []
    for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        pairs = open_pairs[begin:end]
        job = int(programme.job[pairs[0]])
        usage, loss = programme.usage[:, pairs].astype(np.int64), pair_loss[pairs]
        if empty_loss[job] <= budget:
            pairs, loss = np.append(pairs, NOTHING), np.append(loss, empty_loss[job])
            usage = np.concatenate((usage, np.zeros((len(free), 1), dtype=np.int64)), axis=1)
        least = usage.min(axis=1)
        free -= least
        options.append(_Option(job, pairs, usage - least[:, None], loss))
    # coarse choices first: few partial answers early, and what is left is filled finely
    options.sort(key=lambda option: -int(option.usage.max(initial=0)))
    return _Core(settled, options, free)


def _to_come(core: _Core) -> IntArray:
    """The most places that the options from the i-th on can take, shape (options + 1, R)."""
    largest = np.array([option.usage.max(axis=1) for option in core.options], dtype=np.int64).reshape(-1, len(core.free))
    return np.concatenate((largest[::-1].cumsum(axis=0)[::-1], np.zeros((1, len(core.free)), dtype=np.int64)))


def _strides(free: IntArray, most: IntArray) -> IntArray | None:
    """Factors that turn places used into one number; None where that number would not fit 62 bits."""
    radix = [int(min(f, m)) + 1 for f, m in zip(free, most, strict=True)]
    strides, size = [], 1
    for r in radix:
        strides.append(size)
        size *= r
    return np.array(strides, dtype=np.int64) if size < _LARGEST_KEY else None


def _extend(partial: _Partial, option: _Option, bounds: _Bounds, still: IntArray) -> tuple[_Partial, FloatArray]:
    """Every partial answer with every option of the next job that fits and stays within the budget, and the least it will have lost.

    `still`: the most places that later jobs can take; what even they cannot fill is lost at its price.
    """
    many = len(partial.loss)
    usage = (partial.usage[:, None, :] + option.usage[:, :, None]).reshape(len(bounds.free), -1)
    loss = (partial.loss[None, :] + option.loss[:, None]).ravel()
    left = bounds.free[:, None] - usage
    estimate = loss + bounds.prices @ np.maximum(left - still[:, None], 0)
    kept = np.flatnonzero((estimate <= bounds.budget) & (left >= 0).all(axis=0))
    return _Partial(usage[:, kept], loss[kept], kept % many, kept // many), estimate[kept]


def _distinct(partial: _Partial, estimate: FloatArray, strides: IntArray | None) -> tuple[_Partial, FloatArray]:
    """Of partial answers that use the same places, the one that lost least."""
    if strides is not None:
        key = strides @ partial.usage
        order = np.lexsort((partial.loss, key))
        first = order[np.flatnonzero(np.diff(key[order], prepend=-1))]
    else:
        order = np.lexsort((partial.loss, *partial.usage))
        first = order[np.flatnonzero(np.diff(partial.usage[:, order], axis=1, prepend=-1).any(axis=0))]
    return _take(partial, first), estimate[first]


def _take(partial: _Partial, index: IntArray) -> _Partial:
    return _Partial(partial.usage[:, index], partial.loss[index], partial.parent[index], partial.choice[index])


def _traced(core: _Core, trail: list[_Partial], best: int) -> IntArray:
    """The pairs that led to a final partial answer, shape (J,)."""
    held = core.settled.copy()
    at = best
    for option, partial in zip(reversed(core.options), reversed(trail), strict=True):
        held[option.job] = option.pairs[partial.choice[at]]
        at = int(partial.parent[at])
    return held
