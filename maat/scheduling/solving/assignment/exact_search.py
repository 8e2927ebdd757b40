"""The best answer within a loss budget, by dynamic programming over places.

At prices l, let rc_ij be the reduced value of pair j of job i and best_i = max(0, max_j rc_ij).
Taking pair j loses loss_ij = best_i - rc_ij; taking nothing loses best_i. Every answer is worth

    D(l) - sum_i loss_i - l . (places left unused)

So an answer worth at least D - budget takes only pairs of loss <= budget, and a partial answer that
already lost more can be dropped. The search finds the best answer within the budget, or shows that
there is none: then D - budget is a better bound than D. price_search.py chooses the budget.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.solving.assignment.neighbourhood import movable_jobs
from maat.scheduling.solving.assignment.prepared import NO_PAIR, PreparedProblem

# All work is counted in partial answers looked at.
MAX_PARTIAL_ANSWERS = 20_000  # kept per job while work is left
_MAX_PARTIAL_ANSWERS_LATE = 500  # kept after that: the search still ends with an answer
_WORK_PER_JOB = 300  # fixed cost of a job, beside the cost of its partial answers
_GIVE_UP_AT = 1.5  # times `most_work`: a search that needs more stops without an answer
_KEY_LIMIT = 2**62  # a usage vector becomes one 64-bit key if there are fewer keys than this


@dataclass(frozen=True)
class SearchResult:
    """What a search found and whether it may be relied on as proof.

    `pair_of`, (J,): the best answer found, None for none. `loss`: what it loses against the bound.
    `complete`: no answer within the budget was left out; the answer is then the best one, or none
    within the budget exists. `work`: partial answers looked at.
    """

    pair_of: IntArray | None
    loss: float
    complete: bool
    work: int


@dataclass(frozen=True)
class _JobOptions:
    """What one job may take within the budget: N pairs, NO_PAIR for nothing.

    `least`, (R,): the fewest places that any option takes. `usage`, (R, N): places above `least`.
    `loss`: (N,).
    """

    job: int
    pairs: IntArray
    usage: IntArray
    least: IntArray
    loss: FloatArray


@dataclass(frozen=True)
class _Core:
    """The core problem: the jobs that have a choice within the budget.

    `settled`, (J,): the pair of each job with a single option. `settled_loss`: what those lose.
    `free`, (R,): places left beside the settled pairs and every job's `least`.
    """

    settled: IntArray
    settled_loss: float
    options: list[_JobOptions]
    free: IntArray


@dataclass(frozen=True)
class _SearchLimits:
    """What limits partial answers.

    `free`, (R,): places that they may use. `prices`, (R,): of an unused place. `budget`: their most
    loss.
    """

    free: IntArray
    prices: FloatArray
    budget: float


@dataclass(frozen=True)
class _PartialAnswers:
    """N partial answers: places used, (R, N), and loss so far, (N,).

    `parent`, (N,): the partial answer of the jobs before that each extends. `option`, (N,): the
    option of the last job that it takes.
    """

    usage: IntArray
    loss: FloatArray
    parent: IntArray
    option: IntArray

    def take(self, index: IntArray) -> _PartialAnswers:
        return _PartialAnswers(
            self.usage[:, index], self.loss[index], self.parent[index], self.option[index]
        )


class _BackPointers(NamedTuple):
    """Parent and option of a job's N partial answers, to trace one back."""

    parent: NDArray[np.int32]
    option: NDArray[np.int32]


def search_within_budget(
    problem: PreparedProblem,
    prices: FloatArray,
    *,
    budget: float,
    most_work: int,
    max_partial_answers: int = MAX_PARTIAL_ANSWERS,
    around: IntArray | None = None,
) -> SearchResult:
    """Find the best answer within a loss budget at these prices.

    `budget`: the most that it may lose against the bound. `around`, (J,): an answer; only a few
    jobs may then differ from it. Such a search is quick and never complete.
    """
    core = _core(problem, prices, budget, around)
    if (core.free < 0).any() or core.settled_loss > budget:
        return SearchResult(None, np.inf, complete=around is None, work=0)
    limits = _SearchLimits(core.free, prices, budget)
    later_usage = _largest_later_usage(core)
    strides = _key_strides(core.free, later_usage[0])
    partial = _PartialAnswers(
        np.zeros((len(prices), 1), dtype=np.int64),
        np.full(1, core.settled_loss),
        *np.zeros((2, 1), dtype=np.int64),
    )
    trail: list[_BackPointers] = []
    complete, work = around is None, 0
    for options, still in zip(core.options, later_usage[1:], strict=True):
        work += len(partial.loss) * len(options.pairs) + _WORK_PER_JOB
        partial, least_loss = _extend(partial, options, limits, still)
        partial, least_loss = _best_per_usage(partial, least_loss, strides)
        keep = max_partial_answers if work < most_work else _MAX_PARTIAL_ANSWERS_LATE
        if len(partial.loss) > keep:
            complete = False
            partial = partial.take(np.sort(np.argpartition(least_loss, keep)[:keep]))
        if not len(partial.loss) or work > _GIVE_UP_AT * most_work:
            return SearchResult(None, np.inf, complete and not len(partial.loss), work)
        trail.append(
            _BackPointers(partial.parent.astype(np.int32), partial.option.astype(np.int32))
        )
    loss = partial.loss + prices @ (core.free[:, None] - partial.usage)
    best = int(loss.argmin())
    if loss[best] > budget:
        return SearchResult(None, np.inf, complete, work)
    return SearchResult(_trace_back(core, trail, best), float(loss[best]), complete, work)


def _core(
    problem: PreparedProblem, prices: FloatArray, budget: float, around: IntArray | None
) -> _Core:
    """Settle the jobs with one option in the budget; list those of the others."""
    reduced = problem.reduced_values(prices)
    empty_loss = np.maximum(np.maximum.reduceat(reduced, problem.starts), 0.0)
    pair_loss = empty_loss[problem.job] - reduced
    near, empty = pair_loss <= budget, empty_loss <= budget
    if around is not None:
        movable = movable_jobs(problem, around, near, empty, pair_loss, empty_loss)
        near &= movable[problem.job]
        near[around[around != NO_PAIR]] = True
        empty = (empty & movable) | (around == NO_PAIR)
    pairs = np.flatnonzero(near)
    jobs = problem.job[pairs]
    count = np.bincount(jobs, minlength=problem.job_count) + empty
    settled = np.full(problem.job_count, NO_PAIR)
    alone = pairs[count[jobs] == 1]
    settled[problem.job[alone]] = alone
    settled_loss = float(pair_loss[alone].sum() + empty_loss[(count == 1) & empty].sum())
    free = np.round(problem.capacity - problem.usage[:, alone].sum(axis=1)).astype(np.int64)
    options = _options_by_job(
        problem, pairs[count[jobs] > 1], pair_loss, np.where(empty, empty_loss, np.inf)
    )
    for one in options:
        free -= one.least
    return _Core(settled, settled_loss, options, free)


def _options_by_job(
    problem: PreparedProblem, pairs: IntArray, pair_loss: FloatArray, empty_loss: FloatArray
) -> list[_JobOptions]:
    """Return the options of the jobs of these pairs, largest usage first.

    Large steps in usage come early, where they make few partial answers; small ones fill gaps late.
    """
    bounds = np.flatnonzero(np.diff(problem.job[pairs], prepend=-1, append=problem.job_count))
    options = []
    for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        mine = pairs[begin:end]
        job = int(problem.job[mine[0]])
        usage, loss = problem.usage[:, mine].astype(np.int64), pair_loss[mine]
        if empty_loss[job] < np.inf:
            mine, loss = np.append(mine, NO_PAIR), np.append(loss, empty_loss[job])
            usage = np.concatenate((usage, np.zeros((len(usage), 1), dtype=np.int64)), axis=1)
        least = usage.min(axis=1)
        options.append(_JobOptions(job, mine, usage - least[:, None], least, loss))
    return sorted(options, key=lambda one: -int(one.usage.max(initial=0)))


def _largest_later_usage(core: _Core) -> IntArray:
    """Return the most places that jobs from i on can take, (jobs + 1, R)."""
    largest = np.array([one.usage.max(axis=1) for one in core.options], dtype=np.int64).reshape(
        -1, len(core.free)
    )
    return np.concatenate(
        (largest[::-1].cumsum(axis=0)[::-1], np.zeros((1, len(core.free)), dtype=np.int64))
    )


def _key_strides(free: IntArray, most: IntArray) -> IntArray | None:
    """Return the factors, (R,), that turn usage into one number.

    None if that number could overflow.
    """
    radix = [int(min(f, m)) + 1 for f, m in zip(free, most, strict=True)]
    strides, size = [], 1
    for r in radix:
        strides.append(size)
        size *= r
    return np.array(strides, dtype=np.int64) if size < _KEY_LIMIT else None


def _extend(
    partial: _PartialAnswers, options: _JobOptions, limits: _SearchLimits, still: IntArray
) -> tuple[_PartialAnswers, FloatArray]:
    """Extend every partial answer by every option of the next job.

    Returns the partial answers that fit and stay within the budget, and the least loss, (N,), that
    each can end with. `still`, (R,): the most places that later jobs can take; places beyond that
    stay unused and are lost at their price.
    """
    many = len(partial.loss)
    usage = (partial.usage[:, None, :] + options.usage[:, :, None]).reshape(len(limits.free), -1)
    loss = (partial.loss[None, :] + options.loss[:, None]).ravel()
    left = limits.free[:, None] - usage
    least_loss = loss + limits.prices @ np.maximum(left - still[:, None], 0)
    kept = np.flatnonzero((least_loss <= limits.budget) & (left >= 0).all(axis=0))
    return (
        _PartialAnswers(usage[:, kept], loss[kept], kept % many, kept // many),
        least_loss[kept],
    )


def _best_per_usage(
    partial: _PartialAnswers, least_loss: FloatArray, strides: IntArray | None
) -> tuple[_PartialAnswers, FloatArray]:
    """Keep, of the partial answers that use the same places, the one of least loss."""
    if strides is not None:
        key = strides @ partial.usage
        order = np.lexsort((partial.loss, key))
        first = order[np.flatnonzero(np.diff(key[order], prepend=-1))]
    else:
        order = np.lexsort((partial.loss, *partial.usage))
        first = order[
            np.flatnonzero(np.diff(partial.usage[:, order], axis=1, prepend=-1).any(axis=0))
        ]
    return partial.take(first), least_loss[first]


def _trace_back(core: _Core, trail: list[_BackPointers], best: int) -> IntArray:
    """Return the pair of every job, (J,), that led to a final partial answer."""
    pair_of = core.settled.copy()
    at = best
    for options, pointers in zip(reversed(core.options), reversed(trail), strict=True):
        pair_of[options.job] = options.pairs[pointers.option[at]]
        at = int(pointers.parent[at])
    return pair_of
