"""Answers with their reports: accepted ones, and the present as fallback."""

from __future__ import annotations

import time

import numpy as np

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.solving.assignment.problem import (
    EXACT,
    Assignment,
    AssignmentProblem,
    SolveOptions,
    feasible_present,
)
from maat.scheduling.solving.report import SolveReport, SolveStatus


def objective_of(problem: AssignmentProblem, chosen: IntArray) -> float:
    """Return the summed value of the chosen pairs."""
    return float(problem.value[chosen].sum())


def accepted(
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
    """Return an accepted answer with its certificate: objective, bound and gap.

    `began`: process time at the start, seconds. `proved`: the solver itself reports that the
    tolerance is reached.
    """
    chosen = np.sort(chosen)
    objective = objective_of(problem, chosen)
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
            prices=_prices_by_name(problem, prices),
        ),
    )


def present_kept(
    problem: AssignmentProblem, began: float, *, method: str, message: str, bound: float
) -> Assignment:
    """Return the present pairs that the limits allow: no answer is usable."""
    chosen = feasible_present(problem)
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
            prices=_prices_by_name(problem, None),
        ),
    )


def _prices_by_name(problem: AssignmentProblem, prices: FloatArray | None) -> dict[str, float]:
    values = [0.0] * len(problem.limit_names) if prices is None else prices.tolist()
    return dict(zip(problem.limit_names, values, strict=True))
