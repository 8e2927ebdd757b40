"""The exact part: among pairs that lose little against the prices, the best combination, by dynamic programming over places left.

With loss_ij = max(0, best_i) - rc_ij, every answer is worth  D(l) - sum_i loss_i - l . (places left unused).  So an answer worth more than
D - budget takes only pairs of loss <= budget, and partial answers that already lost more than the budget can be dropped. Either the best
answer within the budget is found, or none exists and D - budget is a better bound than D. Not responsible for choosing the budget.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maat.scheduling.arrays import BoolArray, FloatArray, IntArray
from maat.scheduling.solving.assignment_greedy import NOTHING
from maat.scheduling.solving.assignment_programme import Programme

WIDTH = 20_000  # most partial answers kept per job while there is work left
NARROW = 500  # and after that, so that a search ends with an answer all the same
_STEP_WORK = 300  # what a job costs beside its partial answers, in partial answers
_OVERTIME = 1.5  # a search that even so has this much more work than it may is given up
_LARGEST_KEY = 2**62
_NEIGHBOURS = 64  # jobs that may change in a neighbourhood
_ALIKE = 5  # of these, jobs with the same change of places


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
    """What one job may take within the budget: N pairs (NOTHING for none), places over its least (R, N), its least (R,), losses (N,)."""

    job: int
    pairs: IntArray
    usage: IntArray
    least: IntArray
    loss: FloatArray


@dataclass(frozen=True)
class _Core:
    """`settled`: jobs with one option hold it, (J,), and `spent` is what they lose. `free`: places left for further places, (R,)."""

    settled: IntArray
    spent: float
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


class _Step(NamedTuple):
    """All that is kept of a job's N partial answers: where each came from and which option it took."""

    parent: NDArray[np.int32]
    choice: NDArray[np.int32]


def search(
    programme: Programme,
    prices: FloatArray,
    *,
    budget: float,
    most_work: int,
    width: int = WIDTH,
    around: IntArray | None = None,
) -> CoreAnswer:
    """The best answer that loses at most `budget` against the bound at these prices.

    `around`: an answer (J,) from which only a few jobs may differ; quick, and complete about nothing.
    """
    core = _core(programme, prices, budget, around)
    if (core.free < 0).any() or core.spent > budget:
        return CoreAnswer(None, np.inf, complete=around is None, work=0)
    bounds = _Bounds(core.free, prices, budget)
    to_come = _to_come(core)
    strides = _strides(core.free, to_come[0])
    partial = _Partial(
        np.zeros((len(prices), 1), dtype=np.int64),
        np.full(1, core.spent),
        *np.zeros((2, 1), dtype=np.int64),
    )
    trail: list[_Step] = []
    complete, work = around is None, 0
    for option, still in zip(core.options, to_come[1:], strict=True):
        work += len(partial.loss) * len(option.pairs) + _STEP_WORK
        partial, estimate = _extend(partial, option, bounds, still)
        partial, estimate = _distinct(partial, estimate, strides)
        keep = width if work < most_work else NARROW
        if len(partial.loss) > keep:
            complete = False
            partial = _take(partial, np.sort(np.argpartition(estimate, keep)[:keep]))
        if not len(partial.loss) or work > _OVERTIME * most_work:
            return CoreAnswer(None, np.inf, complete and not len(partial.loss), work)
        trail.append(_Step(partial.parent.astype(np.int32), partial.choice.astype(np.int32)))
    loss = partial.loss + prices @ (core.free[:, None] - partial.usage)
    best = int(loss.argmin())
    if loss[best] > budget:
        return CoreAnswer(None, np.inf, complete, work)
    return CoreAnswer(_traced(core, trail, best), float(loss[best]), complete, work)


def _core(
    programme: Programme, prices: FloatArray, budget: float, around: IntArray | None
) -> _Core:
    """Jobs with one option within the budget are settled; the others' options are what is searched."""
    reduced = programme.reduced(prices)
    empty_loss = np.maximum(np.maximum.reduceat(reduced, programme.starts), 0.0)
    pair_loss = empty_loss[programme.job] - reduced
    near, empty = pair_loss <= budget, empty_loss <= budget
    if around is not None:
        movable = _neighbourhood(programme, around, near, empty, pair_loss, empty_loss)
        near &= movable[programme.job]
        near[around[around != NOTHING]] = True
        empty = (empty & movable) | (around == NOTHING)
    pairs = np.flatnonzero(near)
    jobs = programme.job[pairs]
    count = np.bincount(jobs, minlength=programme.jobs) + empty
    settled = np.full(programme.jobs, NOTHING)
    alone = pairs[count[jobs] == 1]
    settled[programme.job[alone]] = alone
    spent = float(pair_loss[alone].sum() + empty_loss[(count == 1) & empty].sum())
    free = np.round(programme.capacity - programme.usage[:, alone].sum(axis=1)).astype(np.int64)
    options = _options(
        programme, pairs[count[jobs] > 1], pair_loss, np.where(empty, empty_loss, np.inf)
    )
    for option in options:
        free -= option.least
    return _Core(settled, spent, options, free)


def _options(
    programme: Programme, pairs: IntArray, pair_loss: FloatArray, empty_loss: FloatArray
) -> list[_Option]:
    """The options of every job that has some of these pairs, coarse choices first: few partial answers early, and a fine filling late."""
    bounds = np.flatnonzero(np.diff(programme.job[pairs], prepend=-1, append=programme.jobs))
    options = []
    for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        mine = pairs[begin:end]
        job = int(programme.job[mine[0]])
        usage, loss = programme.usage[:, mine].astype(np.int64), pair_loss[mine]
        if empty_loss[job] < np.inf:
            mine, loss = np.append(mine, NOTHING), np.append(loss, empty_loss[job])
            usage = np.concatenate((usage, np.zeros((len(usage), 1), dtype=np.int64)), axis=1)
        least = usage.min(axis=1)
        options.append(_Option(job, mine, usage - least[:, None], least, loss))
    return sorted(options, key=lambda option: -int(option.usage.max(initial=0)))


def _neighbourhood(
    programme: Programme,
    around: IntArray,
    near: BoolArray,
    empty: BoolArray,
    pair_loss: FloatArray,
    empty_loss: FloatArray,
) -> BoolArray:
    """Jobs that may differ from an answer, shape (J,): those whose cheapest changes are cheapest, a few of each change of places."""
    holds = programme.usage[:, around] * (around != NOTHING)
    change = np.concatenate((programme.usage - holds[:, programme.job], -holds), axis=1)
    job = np.concatenate((programme.job, np.arange(programme.jobs)))
    loss = np.concatenate((pair_loss, empty_loss))
    held = np.where(around == NOTHING, empty_loss, pair_loss[around])
    candidate = np.flatnonzero(np.concatenate((near, empty)) & (change != 0).any(axis=0))
    further = loss[candidate] - held[job[candidate]]
    # one number per change of places; two changes that share a number only share their quota
    kind = np.sqrt(np.arange(2, len(change) + 2)) @ change[:, candidate]
    order = np.lexsort((further, kind))
    first = np.flatnonzero(np.diff(kind[order], prepend=np.nan) != 0)
    position = np.arange(len(order)) - np.repeat(first, np.diff(np.append(first, len(order))))
    few = order[position < _ALIKE]
    few = few[np.argsort(further[few], kind="stable")]
    movable = np.zeros(programme.jobs, dtype=bool)
    movable[list(dict.fromkeys(job[candidate[few]].tolist()))[:_NEIGHBOURS]] = True
    movable[np.argsort(-held, kind="stable")[: _NEIGHBOURS // 2]] = True
    return movable


def _to_come(core: _Core) -> IntArray:
    """The most places that the options from the i-th on can take, shape (options + 1, R)."""
    largest = np.array(
        [option.usage.max(axis=1) for option in core.options], dtype=np.int64
    ).reshape(-1, len(core.free))
    return np.concatenate(
        (largest[::-1].cumsum(axis=0)[::-1], np.zeros((1, len(core.free)), dtype=np.int64))
    )


def _strides(free: IntArray, most: IntArray) -> IntArray | None:
    """Factors that turn places used into one number; None where that number would not fit 62 bits."""
    radix = [int(min(f, m)) + 1 for f, m in zip(free, most, strict=True)]
    strides, size = [], 1
    for r in radix:
        strides.append(size)
        size *= r
    return np.array(strides, dtype=np.int64) if size < _LARGEST_KEY else None


def _extend(
    partial: _Partial, option: _Option, bounds: _Bounds, still: IntArray
) -> tuple[_Partial, FloatArray]:
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


def _distinct(
    partial: _Partial, estimate: FloatArray, strides: IntArray | None
) -> tuple[_Partial, FloatArray]:
    """Of partial answers that use the same places, the one that lost least."""
    if strides is not None:
        key = strides @ partial.usage
        order = np.lexsort((partial.loss, key))
        first = order[np.flatnonzero(np.diff(key[order], prepend=-1))]
    else:
        order = np.lexsort((partial.loss, *partial.usage))
        first = order[
            np.flatnonzero(np.diff(partial.usage[:, order], axis=1, prepend=-1).any(axis=0))
        ]
    return _take(partial, first), estimate[first]


def _take(partial: _Partial, index: IntArray) -> _Partial:
    return _Partial(
        partial.usage[:, index], partial.loss[index], partial.parent[index], partial.choice[index]
    )


def _traced(core: _Core, trail: list[_Step], best: int) -> IntArray:
    """The pairs that led to a final partial answer, shape (J,)."""
    held = core.settled.copy()
    at = best
    for option, step in zip(reversed(core.options), reversed(trail), strict=True):
        held[option.job] = option.pairs[step.choice[at]]
        at = int(step.parent[at])
    return held
