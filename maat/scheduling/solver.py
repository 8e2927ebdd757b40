"""Solving the assignment programme, and the only code that reads a solver's status.

maximise  sum_p value_p x_p   with  x binary,  at most one pair per job,  places of every limit kept
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from maat.scheduling.arrays import BoolArray, FloatArray, IntArray


class SolveStatus(StrEnum):
    """How far the answer is to be believed."""

    OPTIMAL = "optimal"  # proved to the tolerance
    WITHIN_GAP = "within-gap"  # feasible, with a certified gap above the tolerance
    KEPT_PRESENT = "kept-present"  # no usable answer: the present allocation stays
    NOT_NEEDED = "not-needed"  # the policy solves no programme


@dataclass(frozen=True)
class SolveReport:
    """What a solve did. `prices`: of one place under each limit, in the objective's unit. `gap` = (bound - objective) / |bound|."""

    status: SolveStatus = SolveStatus.NOT_NEEDED
    method: str = ""
    objective: float = 0.0
    bound: float = 0.0
    gap: float = 0.0
    seconds: float = 0.0
    fallback: bool = False
    message: str = ""
    prices: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class AssignmentProblem:
    """P pairs sorted by job, R limits. `present` marks pairs that jobs hold now: the answer that is always at hand.

    value, places, job, present: shape (P,); membership: (P, R) bool; capacity: (R,) places; limit_names: R names.
    """

    value: FloatArray
    places: IntArray
    job: IntArray
    membership: BoolArray
    capacity: IntArray
    present: BoolArray
    limit_names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Assignment:
    """The chosen pairs (indices into the problem, ascending), and the report."""

    chosen: IntArray
    report: SolveReport


@dataclass(frozen=True, slots=True)
class SolveOptions:
    """`tolerance`: relative gap at which an answer counts as proved. `budget_seconds`: CPU time that closing the gap may take."""

    tolerance: float = 1e-4
    budget_seconds: float = 0.15


def solve(problem: AssignmentProblem, options: SolveOptions = SolveOptions()) -> Assignment:
    """The best assignment found, with its certificate; never worse than keeping what jobs hold."""
    return solve_highs(problem, options)


def solve_highs(problem: AssignmentProblem, options: SolveOptions = SolveOptions()) -> Assignment:
    """The whole programme by HiGHS: the fallback, and the test oracle."""
    import time

    from scipy.optimize import LinearConstraint, milp
    from scipy.sparse import csr_array, vstack

    began = time.process_time()
    pairs = len(problem.value)
    if pairs == 0:
        return Assignment(np.zeros(0, dtype=np.int64), SolveReport(SolveStatus.OPTIMAL, "highs"))
    _, rows = np.unique(problem.job, return_inverse=True)
    one_each = csr_array((np.ones(pairs), (rows, np.arange(pairs))))
    places = csr_array((problem.membership * problem.places[:, None]).T.astype(float))
    upper = np.concatenate((np.ones(one_each.shape[0]), problem.capacity))
    found = milp(
        -problem.value,
        integrality=np.ones(pairs),
        bounds=(0, 1),
        constraints=LinearConstraint(vstack([one_each, places]), -np.inf, upper),
        options={"mip_rel_gap": options.tolerance},
    )
    chosen = np.flatnonzero(found.x > 0.5)
    objective = float(problem.value[chosen].sum())
    return Assignment(
        chosen, SolveReport(SolveStatus.OPTIMAL, "highs", objective, -found.mip_dual_bound, seconds=time.process_time() - began)
    )
