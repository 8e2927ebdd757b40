"""Finds an answer and a bound by prices, greedy and exact search.

Uses no external solver. docs/solver.md explains the steps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.solving.assignment.dual import Prices, minimise_dual
from maat.scheduling.solving.assignment.exact_search import search_within_budget
from maat.scheduling.solving.assignment.greedy import (
    improve_by_exchange,
    ordered_greedy,
    total_value,
)
from maat.scheduling.solving.assignment.prepared import NO_PAIR, PreparedProblem
from maat.scheduling.solving.assignment.problem import EXACT, SolveOptions

WORK_PER_SECOND = 5_000_000  # partial answers that the exact search looks at in a CPU second
_FIRST_BUDGET = 1 / 16  # of the gap
_MIN_BUDGET = 0.25  # of the tolerance times the bound: the first budget is no smaller
_BUDGET_GROWTH = 2.0
_WHOLE_GAP = 1 + 1e-12  # of the gap: the largest budget of use, rounded up
_CHEAP_WORK = 3_000  # after a search of less work than this the budget grows faster
_CHEAP_GROWTH = 4.0
# With fewer jobs the exact search over all jobs costs less than more temperatures and
# neighbourhoods do.
_FEW_JOBS = 300
# Of the tolerance: with few jobs, a temperature that improved the bound by less is the last one.
_SMALL_IMPROVEMENT = 0.1
_NEIGHBOURHOOD_BUDGETS = (0.25, 0.9)  # of the gap, one after the other
_NEIGHBOURHOOD_ROUNDS = 6  # at each of these budgets
_NEIGHBOURHOOD_PARTIAL_ANSWERS = 400
_NEIGHBOURHOOD_WORK = 150_000


@dataclass(frozen=True, slots=True)
class BoundedAnswer:
    """The pair of every job, (J,), a bound on all answers, and the prices, (R,)."""

    pair_of: IntArray
    bound: float
    prices: FloatArray
    method: str


def search_answer(
    problem: PreparedProblem, present: IntArray, options: SolveOptions
) -> BoundedAnswer:
    """Return the best answer found, with a bound on all answers.

    `present`, (J,), is the present pair of every job; the answer is never worse.
    """
    return _unlimited_answer(problem) or _answer_by_prices(problem, present, options)


def _unlimited_answer(problem: PreparedProblem) -> BoundedAnswer | None:
    """Return every job's best pair if they fit together; places then have no price."""
    top = np.maximum.reduceat(problem.value, problem.starts)
    best = np.flatnonzero(problem.value == top[problem.job])
    pair_of = np.full(problem.job_count, NO_PAIR)
    pair_of[problem.job[best[::-1]]] = best[::-1]
    if (problem.usage[:, pair_of].sum(axis=1) > problem.capacity).any():
        return None
    return BoundedAnswer(pair_of, float(top.sum()), np.zeros(len(problem.capacity)), "unlimited")


def _answer_by_prices(
    problem: PreparedProblem, present: IntArray, options: SolveOptions
) -> BoundedAnswer:
    """Lower the bound and improve the answer until the gap is closed.

    Or until the work budget is spent.
    """
    tolerance = max(options.tolerance, EXACT)
    best = improve_by_exchange(problem, present)
    best_value = total_value(problem, best)
    few_jobs = problem.job_count < _FEW_JOBS
    last: Prices | None = None
    for prices in minimise_dual(problem):
        if prices is not last:  # higher temperatures bound worse, yet may lead to better answers
            pair_of = ordered_greedy(problem, prices.values)
            value = total_value(problem, pair_of)
            if value > best_value:
                best, best_value = pair_of, value
        if prices.bound - best_value <= tolerance * prices.bound:
            return BoundedAnswer(best, prices.bound, prices.values, "prices")
        if (
            few_jobs
            and last is not None
            and last.bound - prices.bound <= _SMALL_IMPROVEMENT * tolerance * prices.bound
        ):
            break
        last = prices
    answer = BoundedAnswer(best, prices.bound, prices.values, "prices and core")
    return _close_gap(problem, answer, tolerance, int(options.budget_seconds * WORK_PER_SECOND))


def _close_gap(
    problem: PreparedProblem, answer: BoundedAnswer, tolerance: float, most_work: int
) -> BoundedAnswer:
    """Search with growing loss budgets until the gap is closed or work runs out."""
    root, bound = answer.bound, answer.bound
    pair_of, work = _search_neighbourhoods(problem, answer, tolerance)
    best = total_value(problem, pair_of)
    budget = max((root - best) * _FIRST_BUDGET, _MIN_BUDGET * tolerance * root)
    while bound - best > tolerance * bound and work < most_work:
        budget = min(budget, (root - best) * _WHOLE_GAP)
        found = search_within_budget(
            problem, answer.prices, budget=budget, most_work=most_work - work
        )
        work += found.work
        pair_of, best = _better_of(problem, pair_of, found.pair_of)
        if found.complete:
            bound = min(bound, max(root - (budget if found.pair_of is None else found.loss), best))
        if budget >= root - best:
            break
        budget *= _CHEAP_GROWTH if found.work < _CHEAP_WORK else _BUDGET_GROWTH
    return replace(answer, pair_of=pair_of, bound=bound)


def _search_neighbourhoods(
    problem: PreparedProblem, answer: BoundedAnswer, tolerance: float
) -> tuple[IntArray, int]:
    """Return an answer improved in its neighbourhoods, (J,), and the work done.

    With few jobs nothing is searched here: the search over all jobs is quick enough.
    """
    pair_of, best, work = answer.pair_of, total_value(problem, answer.pair_of), 0
    for share in _NEIGHBOURHOOD_BUDGETS if problem.job_count >= _FEW_JOBS else ():
        for _ in range(_NEIGHBOURHOOD_ROUNDS):
            gap = answer.bound - best
            if gap <= tolerance * answer.bound:
                return pair_of, work
            budget = max(gap * share, min(tolerance * answer.bound, gap))
            found = search_within_budget(
                problem,
                answer.prices,
                budget=budget,
                most_work=_NEIGHBOURHOOD_WORK,
                max_partial_answers=_NEIGHBOURHOOD_PARTIAL_ANSWERS,
                around=pair_of,
            )
            work += found.work
            pair_of, value = _better_of(problem, pair_of, found.pair_of)
            if value <= best:
                break
            best = value
    return pair_of, work


def _better_of(
    problem: PreparedProblem, pair_of: IntArray, found: IntArray | None
) -> tuple[IntArray, float]:
    """Return the better of two answers, the second after exchanges; and its value."""
    best = total_value(problem, pair_of)
    if found is None:
        return pair_of, best
    found = improve_by_exchange(problem, found)
    value = total_value(problem, found)
    return (found, value) if value > best else (pair_of, best)
