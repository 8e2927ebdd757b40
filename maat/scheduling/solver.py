"""Solving the assignment programme and linear programmes, and the only code that reads a solver's status.

maximise  sum_p value_p x_p   with  x binary,  at most one pair per job,  places of every limit kept

Prices bound every answer from above, a greedy over prices finds one, a search over near-tied pairs closes the gap (prices.py,
assignment_greedy.py, assignment_core.py); plain HiGHS is asked where a real gap is left. Whatever comes out is checked against the limits
and against keeping the present allocation before it is believed.

Equally good answers: fewer places first, then the pairs that come first; with `tie_seed`, by chance. The preference is a ten-thousand-
millionth of the largest value, so it never costs anything; an answer accepted within the tolerance need not be the preferred one.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from maat.scheduling import assignment_highs, mixed_highs
from maat.scheduling.arrays import BoolArray, FloatArray, IntArray
from maat.scheduling.assignment_core import search
from maat.scheduling.assignment_greedy import NOTHING, improve, ordered_greedy, worth
from maat.scheduling.assignment_problem import (
    Assignment,
    AssignmentProblem,
    SolveOptions,
    SolveReport,
    SolveStatus,
    is_feasible,
    kept_present,
    trivial_bound,
)
from maat.scheduling.errors import ContractViolation
from maat.scheduling.linear_programme import LinearAnswer, LinearMethod, LinearProgramme, run_clarabel, run_simplex
from maat.scheduling.mixed_programme import MixedAnswer, MixedOptions, MixedProgramme, breaks
from maat.scheduling.prices import TEMPERATURES, WARM_TEMPERATURES, Prices, Programme, falling_prices

__all__ = [
    "Assignment",
    "AssignmentProblem",
    "MixedAnswer",
    "MixedOptions",
    "MixedProgramme",
    "LinearSolution",
    "SolveOptions",
    "SolveReport",
    "SolveStatus",
    "solve",
    "solve_highs",
    "solve_mixed",
    "solve_linear",
]

ACCEPTABLE_GAP = 2e-3  # certified; above it plain HiGHS is asked
_MOST_FOR_HIGHS = 30_000  # pairs; with more it has not ended in minutes, and does not keep to its time limit
_EXACT = 1e-8  # relative; a smaller gap is rounding
_SLACK = 1e-6  # relative to a row's right-hand side: by how much an interior point may overstep it
_PREFERENCE = 1e-10  # of the largest value: what the least preferred of equal pairs is worth less
_BITS = 62  # limits whose membership fits one integer
_WORK_PER_SECOND = 5_000_000  # partial answers that the core search looks at in a CPU second
_FIRST_BUDGET = 1 / 16  # of the gap
_BUDGET_GROWTH = 2.0
_CHEAP_WORK = 3_000  # after a search of less work the budget grows
_CHEAP_GROWTH = 4.0  # by this
_FEW_JOBS = 300  # with fewer, searching among all of them is quicker than better prices and better first answers
_COOL_ENOUGH = 0.1  # of the tolerance: for few jobs, a temperature that lowered the bound by less is the last
_POLISH_SHARES = (0.25, 0.9)  # of the gap, as budget in neighbourhoods
_POLISH_ROUNDS = 6
_POLISH_WIDTH = 400
_POLISH_WORK = 150_000


@dataclass(frozen=True, slots=True)
class _Proof:
    """An answer to a programme, the pair of every job (J,), and what bounds it."""

    held: IntArray
    bound: float
    prices: FloatArray
    method: str


def solve(problem: AssignmentProblem, options: SolveOptions = SolveOptions(), hint: Mapping[str, float] | None = None) -> Assignment:
    """The best assignment found, with its certificate; never worse than keeping what jobs hold.

    `hint`: prices by limit name to begin from (last round's): they change the time it takes, and nothing of what is proved.
    """
    began = time.process_time()
    doubt = _doubt(problem)
    if doubt:
        return _keep_present(problem, began, method="prices", message=doubt, bound=trivial_bound(problem))
    pairs = _pairs_that_matter(problem)
    if not len(pairs):
        return _report(problem, pairs, began, options, method="nothing to choose", bound=0.0)
    programme = _programme(problem, pairs, options.tie_seed)
    present = _held_now(problem, programme, pairs)
    proof = _without_prices(programme) or _by_prices(programme, present, options, _start(problem, hint))
    bound = proof.bound + _PREFERENCE * programme.scale * programme.jobs
    chosen = pairs[proof.held[proof.held != NOTHING]]
    answer = _report(problem, chosen, began, options, method=proof.method, bound=bound, prices=proof.prices)
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
        return _report(problem, np.zeros(0, dtype=np.int64), began, options, method=method, bound=0.0)
    said = assignment_highs.run_highs(problem, gap=options.tolerance, seconds=options.fallback_seconds)
    chosen, present = np.flatnonzero(said.x > 0.5), kept_present(problem)
    if not is_feasible(problem, chosen):
        message = f"HiGHS ended with '{said.status}' and an assignment that breaks a limit"
        return _keep_present(problem, began, method=method, message=message, bound=bound)
    found, at_hand = _worth(problem, chosen), _worth(problem, present)
    if found < at_hand and not (said.optimal and found >= at_hand - max(options.tolerance, _EXACT) * abs(at_hand)):
        message = f"HiGHS ended with '{said.status}' and an assignment worth {found:.6g}, less than the present {at_hand:.6g}"
        return _keep_present(problem, began, method=method, message=message, bound=bound)
    best = chosen if found >= at_hand else present
    return _report(problem, best, began, options, method=method, bound=min(said.bound, bound), proved=said.optimal)


def solve_mixed(programme: MixedProgramme, options: MixedOptions = MixedOptions()) -> MixedAnswer:
    """The best answer that HiGHS finds to a programme of a policy's own, checked against every row before it is believed.

    No usable answer is a report that says so: what then stays is for the policy to say.
    """
    began = time.process_time()
    said = mixed_highs.run_highs(programme, options)
    x = None if said.x is None or not np.isfinite(said.x).all() else np.where(programme.whole, np.round(said.x), said.x)
    if x is None or breaks(programme, x):
        message = f"HiGHS ended with '{said.status}'" + ("" if x is None else " and an answer that breaks a row")
        report = SolveReport(SolveStatus.KEPT_PRESENT, "highs", seconds=time.process_time() - began, fallback=True, message=message)
        return MixedAnswer(None, report, infeasible=said.infeasible)
    objective = float(programme.cost @ x)
    bound = max(said.bound if np.isfinite(said.bound) else _box_bound(programme), objective)
    gap = (bound - objective) / max(abs(bound), abs(objective), 1e-300)
    proved = said.optimal or gap <= max(options.gap, _EXACT)
    status = SolveStatus.OPTIMAL if proved else SolveStatus.WITHIN_GAP
    return MixedAnswer(x, SolveReport(status, "highs", objective, bound, gap, time.process_time() - began))


def _box_bound(programme: MixedProgramme) -> float:
    """What the bounds of the columns alone allow; the largest number where they allow everything."""
    best = np.where(programme.cost > 0, programme.upper, programme.lower)
    total = float(np.where(programme.cost != 0, programme.cost * best, 0.0).sum())
    return total if np.isfinite(total) else float(np.finfo(np.float64).max)


# ---- linear programmes ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LinearSolution:
    """The variables, shape (V,), never below zero, and the report."""

    x: FloatArray
    report: SolveReport


def solve_linear(
    programme: LinearProgramme, *, present: FloatArray, method: LinearMethod, row_names: Mapping[int, str] | None = None
) -> LinearSolution:
    """The best answer to a linear programme, or `present` where no method gives one that keeps the rows and is not worse.

    `present`: shape (V,), an answer that keeps the rows. `row_names`: rows whose prices the report keeps. The other method is asked where
    the first one does not end with an optimum.
    """
    began = time.process_time()
    if not np.isfinite(programme.gain).all() or not np.isfinite(programme.entry).all() or not np.isfinite(programme.most).all():
        return _kept(programme, present, began, "the programme holds a value that is no finite number")
    said: list[str] = []
    for name, run in sorted(_LINEAR.items(), key=lambda item: item[0] is not method):
        answer = run(programme)
        said.append(f"{name.value} ended with '{answer.status}'")
        if answer.optimal and _keeps_rows(programme, answer.x):
            return _believed(programme, answer, began, name, row_names or {}, fallback=name is not method, message="; ".join(said))
    return _kept(programme, present, began, "; ".join(said))


_LINEAR = {LinearMethod.INTERIOR_POINT: run_clarabel, LinearMethod.SIMPLEX: run_simplex}


def _keeps_rows(programme: LinearProgramme, x: FloatArray) -> bool:
    slack = _SLACK * np.maximum(np.abs(programme.most), 1.0)
    return bool(np.isfinite(x).all() and (x >= -_SLACK).all() and (programme.used(np.maximum(x, 0.0)) <= programme.most + slack).all())


def _believed(
    programme: LinearProgramme,
    answer: LinearAnswer,
    began: float,
    method: LinearMethod,
    row_names: Mapping[int, str],
    *,
    fallback: bool,
    message: str,
) -> LinearSolution:
    x, prices = np.maximum(answer.x, 0.0), np.maximum(answer.prices, 0.0)
    objective = float(programme.gain @ x)
    bound = max(float(programme.most @ prices), objective)
    report = SolveReport(
        status=SolveStatus.OPTIMAL,
        method=method.value,
        objective=objective,
        bound=bound,
        gap=(bound - objective) / max(abs(bound), 1e-12),
        seconds=time.process_time() - began,
        fallback=fallback,
        message=message if fallback else "",
        prices={name: float(prices[row]) for row, name in row_names.items()},
    )
    return LinearSolution(x, report)


def _kept(programme: LinearProgramme, present: FloatArray, began: float, message: str) -> LinearSolution:
    objective = float(np.nan_to_num(programme.gain, posinf=0.0, neginf=0.0) @ present)
    report = SolveReport(
        status=SolveStatus.KEPT_PRESENT,
        method="linear",
        objective=objective,
        bound=objective,
        seconds=time.process_time() - began,
        fallback=True,
        message=f"{message}; the present shares stay",
    )
    return LinearSolution(present, report)


# ---- from a problem to a programme ------------------------------------------------------------------------------------------------


def _doubt(problem: AssignmentProblem) -> str:
    """Why the problem cannot be solved as it stands; empty where it can. Raises ContractViolation where pairs are not sorted by job."""
    if (np.diff(problem.job) < 0).any():
        raise ContractViolation("the pairs of an assignment problem are not sorted by job")
    broken = int(np.count_nonzero(~np.isfinite(problem.value)))
    return f"{broken} of {len(problem.value)} pairs have a value that is no finite number" if broken else ""


def _pairs_that_matter(problem: AssignmentProblem) -> IntArray:
    """Pairs worth something that would fit if they were alone: no best answer needs another."""
    usage = problem.membership * problem.places[:, None]
    return np.flatnonzero((problem.value > 0) & (usage <= np.maximum(problem.capacity, 0)).all(axis=1))


def _programme(problem: AssignmentProblem, pairs: IntArray, tie_seed: int | None) -> Programme:
    count = len(pairs)
    places = problem.places[pairs].astype(np.float64)
    job = problem.job[pairs]
    new = np.empty(count, dtype=bool)
    new[0] = True
    np.not_equal(job[1:], job[:-1], out=new[1:])
    value = problem.value[pairs]
    scale = float(value.max())
    if tie_seed is None:
        rank = (places + np.arange(count) / count) / (places.max() + 1)
    else:
        rank = np.random.default_rng(tie_seed).permutation(count) / count
    membership = problem.membership[pairs]
    patterns, kind = _distinct_rows(membership)
    number = new.cumsum() - 1
    return Programme(
        value=value - (_PREFERENCE * scale) * rank,
        places=places,
        rank=rank,
        job=number,
        starts=np.flatnonzero(new),
        kind=kind,
        patterns=patterns,
        cell=number * len(patterns) + kind,
        usage=np.ascontiguousarray(membership.T) * places,
        capacity=np.maximum(problem.capacity, 0).astype(np.float64),
        scale=scale,
    )


def _distinct_rows(membership: BoolArray) -> tuple[FloatArray, IntArray]:
    """The distinct rows of (P, R) as 0 and 1, (K, R), and which of them each row is, (P,)."""
    limits = membership.shape[1]
    if limits > _BITS:
        rows, kind = np.unique(membership, axis=0, return_inverse=True)
        return rows.astype(np.float64), kind.reshape(-1)
    number, kind = np.unique(membership @ (1 << np.arange(limits)), return_inverse=True)
    return (number[:, None] >> np.arange(limits) & 1).astype(np.float64), kind


def _held_now(problem: AssignmentProblem, programme: Programme, pairs: IntArray) -> IntArray:
    """What jobs hold, as far as the limits still allow it and it is worth something: the pair of every job, shape (J,)."""
    mask = np.zeros(len(problem.value), dtype=bool)
    mask[kept_present(problem)] = True
    present = np.flatnonzero(mask[pairs])
    held = np.full(programme.jobs, NOTHING)
    held[programme.job[present]] = present
    return held


def _start(problem: AssignmentProblem, hint: Mapping[str, float] | None) -> FloatArray | None:
    if not hint:
        return None
    return np.array([hint.get(name, 0.0) for name in problem.limit_names], dtype=np.float64)


# ---- solving ----------------------------------------------------------------------------------------------------------------------


def _without_prices(programme: Programme) -> _Proof | None:
    """Every job's best pair, if they fit together: places are worth nothing then."""
    top = np.maximum.reduceat(programme.value, programme.starts)
    best = np.flatnonzero(programme.value == top[programme.job])
    held = np.full(programme.jobs, NOTHING)
    held[programme.job[best[::-1]]] = best[::-1]
    if (programme.usage[:, held].sum(axis=1) > programme.capacity).any():
        return None
    return _Proof(held, float(top.sum()), np.zeros(len(programme.capacity)), "unlimited")


def _by_prices(programme: Programme, present: IntArray, options: SolveOptions, start: FloatArray | None) -> _Proof:
    """Prices, greedy and core search, until the gap is within the tolerance or the budget is spent."""
    temperatures = TEMPERATURES if start is None else WARM_TEMPERATURES
    tolerance = max(options.tolerance, _EXACT)
    best = improve(programme, present)
    best_worth = worth(programme, best)
    best_worth = worth(programme, best)
    small = programme.jobs < _FEW_JOBS
    tried: Prices | None = None
    for prices in falling_prices(programme, start, temperatures):
        if prices is not tried:  # the coolest prices bound best, but others may lead the greedy better
            held = ordered_greedy(programme, prices.values)
            value = worth(programme, held)
            if value > best_worth:
                best, best_worth = held, value
        if prices.bound - best_worth <= tolerance * prices.bound:
            return _Proof(best, prices.bound, prices.values, "prices")
        if small and tried is not None and tried.bound - prices.bound <= _COOL_ENOUGH * tolerance * prices.bound:
            break
        tried = prices
    proof = _Proof(best, prices.bound, prices.values, "prices and core")
    return _close(programme, proof, tolerance, int(options.budget_seconds * _WORK_PER_SECOND))


def _close(programme: Programme, proof: _Proof, tolerance: float, most_work: int) -> _Proof:
    """Search growing budgets of loss until the answer is proved or the work is done."""
    root, bound = proof.bound, proof.bound
    held, work = _polish(programme, proof, tolerance)
    best = worth(programme, held)
    budget = max((root - best) * _FIRST_BUDGET, 0.25 * tolerance * root)
    while bound - best > tolerance * bound and work < most_work:
        budget = min(budget, (root - best) * (1 + 1e-12))
        answer = search(programme, proof.prices, budget=budget, most_work=most_work - work)
        work += answer.work
        held, best = _better(programme, held, answer.held)
        if answer.complete:
            bound = min(bound, max(root - (budget if answer.held is None else answer.loss), best))
        if budget >= root - best:
            break
        budget *= _CHEAP_GROWTH if answer.work < _CHEAP_WORK else _BUDGET_GROWTH
    return replace(proof, held=held, bound=bound)


def _polish(programme: Programme, proof: _Proof, tolerance: float) -> tuple[IntArray, int]:
    """Better answers in neighbourhoods of the answer, until one is good enough or none is found; with the work done."""
    held, best, work = proof.held, worth(programme, proof.held), 0
    for share in _POLISH_SHARES if programme.jobs >= _FEW_JOBS else ():
        for _ in range(_POLISH_ROUNDS):
            gap = proof.bound - best
            if gap <= tolerance * proof.bound:
                return held, work
            budget = max(gap * share, min(tolerance * proof.bound, gap))
            answer = search(programme, proof.prices, budget=budget, most_work=_POLISH_WORK, width=_POLISH_WIDTH, around=held)
            work += answer.work
            held, value = _better(programme, held, answer.held)
            if value <= best:
                break
            best = value
    return held, work


def _better(programme: Programme, held: IntArray, found: IntArray | None) -> tuple[IntArray, float]:
    """The better of two answers, and its worth."""
    best = worth(programme, held)
    if found is None:
        return held, best
    found = improve(programme, found)
    value = worth(programme, found)
    return (found, value) if value > best else (held, best)


def _second_opinion(problem: AssignmentProblem, answer: Assignment, began: float, options: SolveOptions) -> Assignment:
    """The better of the answer and what plain HiGHS finds, under the lower of the two bounds."""
    other = solve_highs(problem, options)
    if other.report.fallback:
        return replace(answer, report=replace(answer.report, message=other.report.message, seconds=time.process_time() - began))
    better = other if other.report.objective > answer.report.objective else answer
    bound = min(answer.report.bound, other.report.bound)
    prices = np.array(list(answer.report.prices.values()))
    return _report(problem, better.chosen, began, options, method=f"{answer.report.method}, then highs", bound=bound, prices=prices)


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
    proved = proved or gap <= max(options.tolerance, _EXACT)
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


def _keep_present(problem: AssignmentProblem, began: float, *, method: str, message: str, bound: float) -> Assignment:
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
