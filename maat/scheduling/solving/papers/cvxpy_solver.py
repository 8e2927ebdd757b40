"""Runs CVXPY on a stated programme, and reads what it reports. Who asked checks the answer."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from maat.scheduling.arrays import FloatArray
from maat.scheduling.solving.papers.stated_answer import StatedAnswer


@dataclass(frozen=True)
class MixedLimits:
    """When HiGHS ends: at a relative gap, after wall seconds, after nodes (None: no limit)."""

    gap: float
    seconds: float
    nodes: int | None = None


def run_mixed(problem: cp.Problem, x: cp.Variable, limits: MixedLimits) -> StatedAnswer:
    """Solve a programme with binary variables by HiGHS, on one thread with a fixed seed.

    The answer is the value of `x`.
    """
    nodes = {} if limits.nodes is None else {"mip_max_nodes": limits.nodes}
    status = _run(
        problem,
        solver=cp.HIGHS,
        threads=1,
        random_seed=0,
        mip_rel_gap=limits.gap,
        time_limit=limits.seconds,
        **nodes,
    )
    info = None if problem.solver_stats is None else problem.solver_stats.extra_stats
    lost = np.inf
    if info is not None and x.value is not None:
        lost = abs(float(info.objective_function_value) - float(info.mip_dual_bound))
    return StatedAnswer(
        optimal=status == cp.OPTIMAL,
        infeasible=status in {cp.INFEASIBLE, cp.settings.INFEASIBLE_OR_UNBOUNDED},
        status=status,
        x=_value(x),
        lost=lost if np.isfinite(lost) else np.inf,
        objective=_objective(problem),
        out_of_time=status == cp.USER_LIMIT and _seconds(problem) >= limits.seconds,
    )


def run_convex(problem: cp.Problem, x: cp.Variable) -> StatedAnswer:
    """Solve a convex programme by Clarabel, an interior point.

    Of equally good answers it returns the middle, as ECOS does, which Gavel's published code uses.
    It says nothing of what the answer lacks: who states the programme bounds it by its prices.
    """
    status = _run(problem, solver=cp.CLARABEL)
    return StatedAnswer(
        optimal=status == cp.OPTIMAL,
        infeasible=status == cp.INFEASIBLE,
        status=status,
        x=_value(x),
        lost=np.inf,
        objective=_objective(problem),
    )


def run_relaxed(problem: cp.Problem) -> None:
    """Solve a linear programme by HiGHS; its constraints then have their prices."""
    _run(problem, solver=cp.HIGHS, threads=1, random_seed=0)


def price_of(constraint: cp.Constraint, size: int) -> FloatArray:
    """Return the price of one unit of each row of a solved constraint, shape (size,).

    Zeros if the solver gave none.
    """
    prices = constraint.dual_value
    if prices is None or not np.isfinite(prices).all():
        return np.zeros(size)
    return np.maximum(np.asarray(prices, dtype=np.float64).reshape(size), 0.0)


def _run(problem: cp.Problem, **options: object) -> str:
    """Return the status; a solver that fails has one too.

    CVXPY warns of an inaccurate answer; its status says so, and it is not accepted.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            problem.solve(**options)
    except cp.SolverError as failure:
        return f"{cp.SOLVER_ERROR}: {failure}"
    return str(problem.status)


def _value(x: cp.Variable) -> FloatArray | None:
    if x.value is None or not np.isfinite(x.value).all():
        return None
    return np.asarray(x.value, dtype=np.float64)


def _objective(problem: cp.Problem) -> float:
    return float("nan") if problem.value is None else float(problem.value)


def _seconds(problem: cp.Problem) -> float:
    return float(problem.solver_stats.solve_time or 0.0)
