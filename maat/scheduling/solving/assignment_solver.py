"""Solving the assignment programme, and the only code that reads what HiGHS says of one.

Prices bound every answer from above, a greedy over prices finds one, a search over near-tied pairs closes the gap (assignment_search.py);
plain HiGHS is asked where a real gap is left. Whatever comes out is checked against the limits and against keeping the present allocation
before it is believed.

Equally good answers: fewer places first, then the pairs that come first; with `tie_seed`, by chance. The preference is a ten-thousand-
millionth of the largest value, so it never costs anything; an answer accepted within the tolerance need not be the preferred one.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.errors import ContractViolation
from maat.scheduling.solving import assignment_highs
from maat.scheduling.solving.assignment_greedy import NOTHING
from maat.scheduling.solving.assignment_highs import HighsAnswer
from maat.scheduling.solving.assignment_problem import (
    EXACT,
    Assignment,
    AssignmentProblem,
    SolveOptions,
    is_feasible,
    kept_present,
    trivial_bound,
)
from maat.scheduling.solving.assignment_programme import (
    PREFERENCE,
    Programme,
    pairs_that_matter,
    programme_of,
)
from maat.scheduling.solving.assignment_search import prove
from maat.scheduling.solving.report import SolveReport, SolveStatus

ACCEPTABLE_GAP = 2e-3  # certified; above it plain HiGHS is asked
_MOST_FOR_HIGHS = (
    30_000  # pairs; with more it has not ended in minutes, and does not keep to its time limit
)


def solve(problem: AssignmentProblem, options: SolveOptions = SolveOptions()) -> Assignment:
    """The best assignment found, with its certificate; never worse than keeping what jobs hold."""
    began = time.process_time()
    doubt = _doubt(problem)
    if doubt:
        return _keep_present(
            problem, began, method="prices", message=doubt, bound=trivial_bound(problem)
        )
    pairs = pairs_that_matter(problem)
    if not len(pairs):
        return _report(problem, pairs, began, options, method="nothing to choose", bound=0.0)
    programme = programme_of(problem, pairs, options.tie_seed)
    present = _held_now(problem, programme, pairs)
    proof = prove(programme, present, options)
    bound = proof.bound + PREFERENCE * programme.scale * programme.jobs
    chosen = pairs[proof.held[proof.held != NOTHING]]
    answer = _report(
        problem, chosen, began, options, method=proof.method, bound=bound, prices=proof.prices
    )
    if answer.report.gap > max(ACCEPTABLE_GAP, options.tolerance) and len(pairs) <= _MOST_FOR_HIGHS:
        return _second_opinion(problem, answer, began, options)
    return answer


def solve_highs(problem: AssignmentProblem, options: SolveOptions = SolveOptions()) -> Assignment:
    """The whole programme by HiGHS, to the gap `tolerance` (0 asks for proof): the fallback, and the test oracle."""
    began = time.process_time()
    bound, method = trivial_bound(problem), "highs"
    doubt = _doubt(problem)
    if doubt:
        return _keep_present(problem, began, method=method, message=doubt, bound=bound)
    if not len(problem.value):
        return _report(
            problem, np.zeros(0, dtype=np.int64), began, options, method=method, bound=0.0
        )
    said = assignment_highs.run_highs(
        problem, gap=options.tolerance, seconds=options.fallback_seconds
    )
    answer = _judged(problem, said, began, options)
    return replace(answer, report=replace(answer.report, out_of_time=said.out_of_time))


def _judged(
    problem: AssignmentProblem, said: HighsAnswer, began: float, options: SolveOptions
) -> Assignment:
    """What HiGHS said where it keeps every limit and is no worse than the present allocation, else that."""
    bound, method = trivial_bound(problem), "highs"
    chosen, present = np.flatnonzero(said.x > 0.5), kept_present(problem)
    if not is_feasible(problem, chosen):
        message = f"HiGHS ended with '{said.status}' and an assignment that breaks a limit"
        return _keep_present(problem, began, method=method, message=message, bound=bound)
    found, at_hand = _worth(problem, chosen), _worth(problem, present)
    if found < at_hand and not (
        said.optimal and found >= at_hand - max(options.tolerance, EXACT) * abs(at_hand)
    ):
        message = f"HiGHS ended with '{said.status}' and an assignment worth {found:.6g}, less than the present {at_hand:.6g}"
        return _keep_present(problem, began, method=method, message=message, bound=bound)
    best = chosen if found >= at_hand else present
    return _report(
        problem,
        best,
        began,
        options,
        method=method,
        bound=min(said.bound, bound),
        proved=said.optimal,
    )


# ---- from a problem to a programme ------------------------------------------------------------------------------------------------


def _doubt(problem: AssignmentProblem) -> str:
    """Why the problem cannot be solved as it stands; empty where it can. Raises ContractViolation where pairs are not sorted by job."""
    if (np.diff(problem.job) < 0).any():
        raise ContractViolation("the pairs of an assignment problem are not sorted by job")
    broken = int(np.count_nonzero(~np.isfinite(problem.value)))
    return (
        f"{broken} of {len(problem.value)} pairs have a value that is no finite number"
        if broken
        else ""
    )


def _held_now(problem: AssignmentProblem, programme: Programme, pairs: IntArray) -> IntArray:
    """What jobs hold, as far as the limits still allow it and it is worth something: the pair of every job, shape (J,)."""
    mask = np.zeros(len(problem.value), dtype=bool)
    mask[kept_present(problem)] = True
    present = np.flatnonzero(mask[pairs])
    held = np.full(programme.jobs, NOTHING)
    held[programme.job[present]] = present
    return held


def _second_opinion(
    problem: AssignmentProblem, answer: Assignment, began: float, options: SolveOptions
) -> Assignment:
    """The better of the answer and what plain HiGHS finds, under the lower of the two bounds."""
    other = solve_highs(problem, options)
    if other.report.fallback:
        return replace(
            answer, report=replace(answer.report.after(other.report), message=other.report.message)
        )
    better = other if other.report.objective > answer.report.objective else answer
    bound = min(answer.report.bound, other.report.bound)
    prices = np.array(list(answer.report.prices.values()))
    both = _report(
        problem,
        better.chosen,
        began,
        options,
        method=f"{answer.report.method}, then highs",
        bound=bound,
        prices=prices,
    )
    return replace(both, report=replace(both.report, out_of_time=other.report.out_of_time))


# ---- reporting --------------------------------------------------------------------------------------------------------------------


def _worth(problem: AssignmentProblem, chosen: IntArray) -> float:
    return float(problem.value[chosen].sum())


def _report(
    problem: AssignmentProblem,
    chosen: IntArray,
    began: float,
    options: SolveOptions,
    *,
    method: str,
    bound: float,
    prices: FloatArray | None = None,
    proved: bool = False,
) -> Assignment:
    """An answer that is believed. `proved`: the solver itself says that the tolerance is reached."""
    chosen = np.sort(chosen)
    objective = _worth(problem, chosen)
    bound = max(bound, objective)
    gap = (bound - objective) / bound if bound > 0 else 0.0
    proved = proved or gap <= max(options.tolerance, EXACT)
    return Assignment(
        chosen,
        SolveReport(
            status=SolveStatus.OPTIMAL if proved else SolveStatus.WITHIN_GAP,
            method=method,
            objective=objective,
            bound=bound,
            gap=gap,
            seconds=time.process_time() - began,
            prices=_named(problem, prices),
        ),
    )


def _keep_present(
    problem: AssignmentProblem, began: float, *, method: str, message: str, bound: float
) -> Assignment:
    """No usable answer: what jobs hold stays, as far as the limits allow."""
    chosen = kept_present(problem)
    objective = float(np.nan_to_num(problem.value[chosen], posinf=0.0, neginf=0.0).sum())
    bound = max(bound, objective)
    return Assignment(
        chosen,
        SolveReport(
            status=SolveStatus.KEPT_PRESENT,
            method=method,
            objective=objective,
            bound=bound,
            gap=(bound - objective) / bound if bound > 0 else 0.0,
            seconds=time.process_time() - began,
            fallback=True,
            message=f"{message}; the present allocation stays",
            prices=_named(problem, None),
        ),
    )


def _named(problem: AssignmentProblem, prices: FloatArray | None) -> dict[str, float]:
    values = [0.0] * len(problem.limit_names) if prices is None else prices.tolist()
    return dict(zip(problem.limit_names, values, strict=True))
