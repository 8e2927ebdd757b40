"""Solves the assignment programme, and checks what HiGHS reports of one.

price_search.py finds an answer and a bound; plain HiGHS is asked if a large gap is left. Or CVXPY
solves the programme as a paper states it (`solve_stated`). Each answer is checked against the
limits, and against keeping the present allocation, before it is accepted. docs/solver.md explains
the method.

Among equally good answers the one with fewer places is preferred, then the pairs that come first;
with `tie_seed`, chance decides. The preference is 1e-10 of the largest value per job: too little to
choose a worse answer. An answer accepted within the tolerance need not be the preferred one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from maat.scheduling.arrays import IntArray
from maat.scheduling.errors import ContractViolation
from maat.scheduling.solving.assignment import highs
from maat.scheduling.solving.assignment.highs import HighsAnswer
from maat.scheduling.solving.assignment.prepared import (
    NO_PAIR,
    PREFERENCE,
    PreparedProblem,
    prepare,
    useful_pairs,
)
from maat.scheduling.solving.assignment.price_search import search_answer
from maat.scheduling.solving.assignment.problem import (
    EXACT,
    Assignment,
    AssignmentProblem,
    SolveOptions,
    feasible_present,
    is_feasible,
    unlimited_bound,
)
from maat.scheduling.solving.assignment.reports import accepted, objective_of, present_kept
from maat.scheduling.solving.papers.stated_answer import StatedAnswer

ACCEPTABLE_GAP = 2e-3  # certified; above it plain HiGHS is asked
# With more pairs HiGHS did not end within minutes, and did not keep to its time limit.
_MAX_PAIRS_FOR_HIGHS = 30_000


def solve(problem: AssignmentProblem, options: SolveOptions = SolveOptions()) -> Assignment:
    """Return the best assignment found, with its certificate.

    It is never worse than the present one.
    """
    began = time.process_time()
    error = _input_error(problem)
    if error:
        return present_kept(
            problem, began, method="prices", message=error, bound=unlimited_bound(problem)
        )
    pairs = useful_pairs(problem)
    if not len(pairs):
        return accepted(problem, pairs, began, options, method="nothing to choose", bound=0.0)
    prepared = prepare(problem, pairs, options.tie_seed)
    found = search_answer(prepared, _present_pairs(problem, prepared, pairs), options)
    answer = accepted(
        problem,
        pairs[found.pair_of[found.pair_of != NO_PAIR]],
        began,
        options,
        method=found.method,
        # The prepared values are lower than the true ones by the preference, at most this much.
        bound=found.bound + PREFERENCE * prepared.scale * prepared.job_count,
        prices=found.prices,
    )
    large_gap = answer.report.gap > max(ACCEPTABLE_GAP, options.tolerance)
    if large_gap and len(pairs) <= _MAX_PAIRS_FOR_HIGHS:
        return _better_of_highs_and(answer, problem, began, options)
    return answer


def solve_highs(problem: AssignmentProblem, options: SolveOptions = SolveOptions()) -> Assignment:
    """Solve the whole programme by HiGHS to the gap `tolerance`.

    This is the fallback and the test oracle. A tolerance of 0 asks for a proof of optimality.
    """
    began = time.process_time()
    bound, method = unlimited_bound(problem), "highs"
    error = _input_error(problem)
    if error:
        return present_kept(problem, began, method=method, message=error, bound=bound)
    if not len(problem.value):
        nothing = np.zeros(0, dtype=np.int64)
        return accepted(problem, nothing, began, options, method=method, bound=0.0)
    highs_answer = highs.run_highs(problem, gap=options.tolerance, seconds=options.fallback_seconds)
    answer = _checked(problem, highs_answer, began, options, method=method)
    return replace(answer, report=replace(answer.report, out_of_time=highs_answer.out_of_time))


def solve_stated(
    problem: AssignmentProblem, options: SolveOptions, state: Callable[[IntArray], StatedAnswer]
) -> Assignment:
    """Return the answer to the programme as a paper states it, checked like one of HiGHS.

    `state`: solves it through CVXPY over the pairs that it is given: those that can matter.
    """
    began = time.process_time()
    bound, method = unlimited_bound(problem), "cvxpy"
    error = _input_error(problem)
    if error:
        return present_kept(problem, began, method=method, message=error, bound=bound)
    pairs = useful_pairs(problem)
    if not len(pairs):
        return accepted(problem, pairs, began, options, method="nothing to choose", bound=0.0)
    stated = state(pairs)
    answer = _checked(problem, _over_all(problem, pairs, stated), began, options, method=method)
    prices = np.zeros(len(problem.limit_names)) if stated.prices is None else stated.prices
    report = replace(
        answer.report,
        out_of_time=stated.out_of_time,
        prices=dict(zip(problem.limit_names, prices.tolist(), strict=True)),
    )
    return replace(answer, report=report)


def _over_all(problem: AssignmentProblem, pairs: IntArray, stated: StatedAnswer) -> HighsAnswer:
    """Return an answer over `pairs` as one over all of them, with its bound in this objective."""
    x = np.zeros(len(problem.value))
    x[pairs] = 0.0 if stated.x is None else stated.x
    bound = objective_of(problem, np.flatnonzero(x > 0.5)) + stated.lost
    return HighsAnswer(stated.optimal, stated.status, x, bound, stated.out_of_time)


def _checked(
    problem: AssignmentProblem,
    highs_answer: HighsAnswer,
    began: float,
    options: SolveOptions,
    *,
    method: str,
) -> Assignment:
    """Return the answer of HiGHS if it is feasible and no worse than the present.

    Otherwise the present allocation stays. `method`: how HiGHS was asked.
    """
    bound, status = unlimited_bound(problem), highs_answer.status
    chosen, present = np.flatnonzero(highs_answer.x > 0.5), feasible_present(problem)
    if not is_feasible(problem, chosen):
        message = f"HiGHS ended with '{status}' and an assignment that breaks a limit"
        return present_kept(problem, began, method=method, message=message, bound=bound)
    objective, at_present = objective_of(problem, chosen), objective_of(problem, present)
    if objective < at_present and not (
        highs_answer.optimal
        and objective >= at_present - max(options.tolerance, EXACT) * abs(at_present)
    ):
        message = (
            f"HiGHS ended with '{status}' and an assignment worth {objective:.6g}, "
            f"less than the present {at_present:.6g}"
        )
        return present_kept(problem, began, method=method, message=message, bound=bound)
    return accepted(
        problem,
        chosen if objective >= at_present else present,
        began,
        options,
        method=method,
        bound=min(highs_answer.bound, bound),
        proved=highs_answer.optimal,
    )


def _input_error(problem: AssignmentProblem) -> str:
    """Return why the problem cannot be solved as it is, or an empty string.

    Raises:
        ContractViolation: The pairs are not sorted by job.
    """
    if (np.diff(problem.job) < 0).any():
        raise ContractViolation("the pairs of an assignment problem are not sorted by job")
    broken = int(np.count_nonzero(~np.isfinite(problem.value)))
    return (
        f"{broken} of {len(problem.value)} pairs have a value that is not finite" if broken else ""
    )


def _present_pairs(
    problem: AssignmentProblem, prepared: PreparedProblem, pairs: IntArray
) -> IntArray:
    """Return the present pair of every job, (J,), if it is useful and feasible."""
    mask = np.zeros(len(problem.value), dtype=bool)
    mask[feasible_present(problem)] = True
    present = np.flatnonzero(mask[pairs])
    pair_of = np.full(prepared.job_count, NO_PAIR)
    pair_of[prepared.job[present]] = present
    return pair_of


def _better_of_highs_and(
    answer: Assignment, problem: AssignmentProblem, began: float, options: SolveOptions
) -> Assignment:
    """Return the better of the answer and that of HiGHS, under the lower bound."""
    other = solve_highs(problem, options)
    if other.report.fallback:
        return replace(
            answer, report=replace(answer.report.after(other.report), message=other.report.message)
        )
    better = other if other.report.objective > answer.report.objective else answer
    both = accepted(
        problem,
        better.chosen,
        began,
        options,
        method=f"{answer.report.method}, then highs",
        bound=min(answer.report.bound, other.report.bound),
        prices=np.array(list(answer.report.prices.values())),
    )
    return replace(both, report=replace(both.report, out_of_time=other.report.out_of_time))
