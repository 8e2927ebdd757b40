"""At most one choice of each job, within limits: the rows of Sia's programme and Themis's auction.

The papers differ in what a choice is, and in the objective.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import cvxpy as cp
import numpy as np
from scipy.sparse import csr_array

from maat.scheduling.arrays import IntArray
from maat.scheduling.solving.papers.cvxpy_solver import (
    MixedLimits,
    price_of,
    run_mixed,
    run_relaxed,
)
from maat.scheduling.solving.papers.stated_answer import StatedAnswer

Objective = Callable[[cp.Variable], cp.Minimize | cp.Maximize]


@dataclass(frozen=True)
class Choices:
    """P choices of jobs, R limits.

    `job`: whose choice it is, (P,). `usage`: what it takes under every limit, (P, R). `capacity`:
    what each limit has, (R,).
    """

    job: IntArray
    usage: IntArray
    capacity: IntArray

    def best(self, objective: Objective, limits: MixedLimits) -> StatedAnswer:
        """Return which choices are made, x of (P,), and the price of each limit.

        Prices are those of the linear relaxation. `objective`: of x.
        """
        made = Programme(self, objective, whole=True)
        relaxed = Programme(self, objective, whole=False)
        run_relaxed(relaxed.problem)
        return replace(
            run_mixed(made.problem, made.x, limits),
            prices=price_of(relaxed.within, len(self.capacity)),
        )


class Programme:
    """The programme over x, (P,); `whole`: x is binary, else in [0, 1]."""

    def __init__(self, of: Choices, objective: Objective, *, whole: bool) -> None:
        many = len(of.job)
        self.x = cp.Variable(many, boolean=True) if whole else cp.Variable(many, bounds=[0, 1])
        one_each = sums_by_job(of.job) @ self.x <= 1
        self.within = of.usage.T.astype(np.float64) @ self.x <= np.maximum(of.capacity, 0)
        self.problem = cp.Problem(objective(self.x), [one_each, self.within])


def sums_by_job(job: IntArray) -> csr_array:
    """Return the matrix (jobs, P) that sums choices by job, jobs in ascending order."""
    _, row = np.unique(job, return_inverse=True)
    return csr_array((np.ones(len(job)), (row, np.arange(len(job)))))
