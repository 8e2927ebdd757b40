"""The assignment programme and its answer, as data. Not responsible for solving: see assignment_solver.py.

maximise  sum_p value_p x_p   with  x binary,  at most one pair per job,  places of every limit kept
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
    """P pairs sorted by job, R limits. `present` marks pairs that jobs hold now: the answer that is always at hand.

    value, places, job, present: shape (P,); membership: (P, R) bool; capacity: (R,) places; limit_names: R names. `taken`, (P, R): places that a
    pair takes under every limit, where some limit counts other than one place for each of its `places`.
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
        """Places that every pair takes under every limit, shape (P, R)."""
        return self.membership * self.places[:, None] if self.taken is None else self.taken


@dataclass(frozen=True)
class Assignment:
    """The chosen pairs (indices into the problem, ascending), and the report."""

    chosen: IntArray
    report: SolveReport


@dataclass(frozen=True, slots=True)
class SolveOptions:
    """`tolerance`: relative gap at which an answer counts as proved. `budget_seconds`: CPU time that closing the gap may take, counted by
    the work done and not by a clock, so that a busy machine gives the same answer. `fallback_seconds`: wall time of plain HiGHS.
    `tie_seed`: which of several equally good answers is taken; None prefers fewer places, then the pairs that come first.
    """

    tolerance: float = 1e-4
    budget_seconds: float = 0.15
    tie_seed: int | None = None
    fallback_seconds: float = 10.0


def is_feasible(problem: AssignmentProblem, chosen: IntArray) -> bool:
    """At most one pair per job, and every limit kept."""
    jobs = problem.job[chosen]
    return len(np.unique(jobs)) == len(jobs) and bool(
        (used_places(problem, chosen) <= np.maximum(problem.capacity, 0)).all()
    )


def used_places(problem: AssignmentProblem, chosen: IntArray) -> IntArray:
    """Places that the chosen pairs take under every limit, shape (R,)."""
    used: IntArray = problem.usage[chosen].sum(axis=0)
    return used


def kept_present(problem: AssignmentProblem) -> IntArray:
    """The present pairs, as many as the limits still allow, in the order of jobs."""
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


def trivial_bound(problem: AssignmentProblem) -> float:
    """Every job's most valuable pair, limits forgotten; values that are no finite number count nothing."""
    if not len(problem.value):
        return 0.0
    value = np.where(np.isfinite(problem.value), problem.value, 0.0)
    starts = np.flatnonzero(np.diff(problem.job, prepend=problem.job[0] - 1))
    return float(np.maximum(np.maximum.reduceat(value, starts), 0.0).sum())
