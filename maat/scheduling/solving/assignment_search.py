"""The search for an assignment: prices, a greedy over them, and the core. Proves what it can, and believes no foreign solver."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.solving.assignment_core import search
from maat.scheduling.solving.assignment_greedy import NOTHING, improve, ordered_greedy, worth
from maat.scheduling.solving.assignment_problem import EXACT, SolveOptions
from maat.scheduling.solving.assignment_programme import Programme
from maat.scheduling.solving.prices import Prices, falling_prices

_WORK_PER_SECOND = 5_000_000  # partial answers that the core search looks at in a CPU second
_FIRST_BUDGET = 1 / 16  # of the gap
_BUDGET_GROWTH = 2.0
_CHEAP_WORK = 3_000  # after a search of less work the budget grows
_CHEAP_GROWTH = 4.0  # by this
_FEW_JOBS = 300  # with fewer, searching among all of them is quicker than better prices and better first answers
_COOL_ENOUGH = (
    0.1  # of the tolerance: for few jobs, a temperature that lowered the bound by less is the last
)
_POLISH_SHARES = (0.25, 0.9)  # of the gap, as budget in neighbourhoods
_POLISH_ROUNDS = 6
_POLISH_WIDTH = 400
_POLISH_WORK = 150_000


@dataclass(frozen=True, slots=True)
class Proof:
    """An answer to a programme, the pair of every job (J,), and what bounds it."""

    held: IntArray
    bound: float
    prices: FloatArray
    method: str


def prove(programme: Programme, present: IntArray, options: SolveOptions) -> Proof:
    """The best answer found, no worse than `present`, the pair of every job (J,)."""
    return _without_prices(programme) or _by_prices(programme, present, options)


def _without_prices(programme: Programme) -> Proof | None:
    """Every job's best pair, if they fit together: places are worth nothing then."""
    top = np.maximum.reduceat(programme.value, programme.starts)
    best = np.flatnonzero(programme.value == top[programme.job])
    held = np.full(programme.jobs, NOTHING)
    held[programme.job[best[::-1]]] = best[::-1]
    if (programme.usage[:, held].sum(axis=1) > programme.capacity).any():
        return None
    return Proof(held, float(top.sum()), np.zeros(len(programme.capacity)), "unlimited")


def _by_prices(programme: Programme, present: IntArray, options: SolveOptions) -> Proof:
    """Prices, greedy and core search, until the gap is within the tolerance or the budget is spent."""
    tolerance = max(options.tolerance, EXACT)
    best = improve(programme, present)
    best_worth = worth(programme, best)
    small = programme.jobs < _FEW_JOBS
    tried: Prices | None = None
    for prices in falling_prices(programme):
        if (
            prices is not tried
        ):  # the coolest prices bound best, but others may lead the greedy better
            held = ordered_greedy(programme, prices.values)
            value = worth(programme, held)
            if value > best_worth:
                best, best_worth = held, value
        if prices.bound - best_worth <= tolerance * prices.bound:
            return Proof(best, prices.bound, prices.values, "prices")
        if (
            small
            and tried is not None
            and tried.bound - prices.bound <= _COOL_ENOUGH * tolerance * prices.bound
        ):
            break
        tried = prices
    proof = Proof(best, prices.bound, prices.values, "prices and core")
    return _close(programme, proof, tolerance, int(options.budget_seconds * _WORK_PER_SECOND))


def _close(programme: Programme, proof: Proof, tolerance: float, most_work: int) -> Proof:
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


def _polish(programme: Programme, proof: Proof, tolerance: float) -> tuple[IntArray, int]:
    """Better answers in neighbourhoods of the answer, until one is good enough or none is found; with the work done."""
    held, best, work = proof.held, worth(programme, proof.held), 0
    for share in _POLISH_SHARES if programme.jobs >= _FEW_JOBS else ():
        for _ in range(_POLISH_ROUNDS):
            gap = proof.bound - best
            if gap <= tolerance * proof.bound:
                return held, work
            budget = max(gap * share, min(tolerance * proof.bound, gap))
            answer = search(
                programme,
                proof.prices,
                budget=budget,
                most_work=_POLISH_WORK,
                width=_POLISH_WIDTH,
                around=held,
            )
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
