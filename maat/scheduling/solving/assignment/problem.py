"""The assignment programme and its answer, as data. solver.py solves it.

maximise  sum_p value_p x_p
subject to  x binary,  at most one pair per job,  places of every limit kept
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from maat.scheduling.arrays import BoolArray, FloatArray, IntArray
from maat.scheduling.solving.report import SolveReport

EXACT = 1e-8  # relative; a smaller gap is rounding


@dataclass(frozen=True)
class AssignmentProblem:
    """P pairs sorted by job, and R limits.

    value, places, job: shape (P,). `present`, (P,), marks the pairs that jobs hold now: this answer
    is always available. membership: (P, R) bool, which limits count which pairs. capacity: (R,)
    places. limit_names: R names. `taken`, (P, R), is the number of places that each pair takes
    under each limit; it is None if each pair takes `places` under each of its limits.
    """

    value: FloatArray
    places: IntArray
    job: IntArray
    membership: BoolArray
    capacity: IntArray
    present: BoolArray
    limit_names: tuple[str, ...] = ()
    taken: IntArray | None = None

    @cached_property
    def usage(self) -> IntArray:
        """Return the places that every pair takes under every limit, shape (P, R)."""
        return self.membership * self.places[:, None] if self.taken is None else self.taken


@dataclass(frozen=True)
class Assignment:
    """The chosen pairs (indices into the problem, ascending), and the report."""

    chosen: IntArray
    report: SolveReport


@dataclass(frozen=True, slots=True)
class SolveOptions:
    """How exact an answer must be, and how much work it may cost.

    `tolerance`: relative gap below which an answer counts as optimal. `budget_seconds`: CPU time
    for closing the gap. It is converted to a number of partial answers, so that a busy machine
    gives the same answer. `fallback_seconds`: wall time of plain HiGHS. `tie_seed`: random choice
    among equally good answers; None prefers fewer places, then the pairs that come first.
    """

    tolerance: float = 1e-4
    budget_seconds: float = 0.15
    tie_seed: int | None = None
    fallback_seconds: float = 10.0


def is_feasible(problem: AssignmentProblem, chosen: IntArray) -> bool:
    """Return whether each job has at most one pair and every limit is kept."""
    jobs = problem.job[chosen]
    return len(np.unique(jobs)) == len(jobs) and bool(
        (used_places(problem, chosen) <= np.maximum(problem.capacity, 0)).all()
    )


def used_places(problem: AssignmentProblem, chosen: IntArray) -> IntArray:
    """Return the places that the chosen pairs take under every limit, shape (R,)."""
    used: IntArray = problem.usage[chosen].sum(axis=0)
    return used


def feasible_present(problem: AssignmentProblem) -> IntArray:
    """Return the present pairs that the limits still allow, in the order of jobs."""
    present = np.flatnonzero(problem.present)
    if is_feasible(problem, present):
        return present
    kept: list[int] = []
    free = np.maximum(problem.capacity, 0)
    last_job = None
    for pair in present.tolist():
        usage = problem.usage[pair]
        if problem.job[pair] != last_job and (usage <= free).all():
            kept.append(pair)
            free = free - usage
            last_job = problem.job[pair]
    return np.array(kept, dtype=np.int64)


def unlimited_bound(problem: AssignmentProblem) -> float:
    """Return the sum of every job's best value, without limits.

    A value that is not finite counts as zero.
    """
    if not len(problem.value):
        return 0.0
    value = np.where(np.isfinite(problem.value), problem.value, 0.0)
    starts = np.flatnonzero(np.diff(problem.job, prepend=problem.job[0] - 1))
    return float(np.maximum(np.maximum.reduceat(value, starts), 0.0).sum())
