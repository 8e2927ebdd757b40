"""Shockwave's programmes over a window of rounds (Zheng et al., NSDI 2023).

x_jr is 1 if job j runs in round r; f_j is the part of its work that is then done.

    max_x  sum_j w_j U(f_j)  -  k max_j (remaining_j - planned_j)+
    with   f_j = done_j + planned_j / paced_j <= 1,   0 <= planned_j <= sum_r x_jr,
           sum_j n_j x_jr <= G in every round r

The first sum is the logarithm of Nash social welfare over time, U = log, made of straight pieces
between breakpoints as in the published code; the second term regularises the makespan. w_j holds
the 1 / (J T) of the mean. planned_j >= least_j is the row of finish-time fairness. All times are in
rounds.
"""

from __future__ import annotations

from typing import Protocol

import cvxpy as cp
import numpy as np

from maat.scheduling.arrays import BoolArray, FloatArray, IntArray
from maat.scheduling.solving.papers.cvxpy_solver import MixedLimits, run_mixed
from maat.scheduling.solving.papers.stated_answer import StatedAnswer


class Window(Protocol):
    """The data of a window: J jobs, arrays (J,); `free`: GPUs of every round; T = `rounds`."""

    @property
    def demand(self) -> IntArray: ...
    @property
    def done(self) -> FloatArray: ...
    @property
    def paced_rounds(self) -> FloatArray: ...
    @property
    def remaining_rounds(self) -> FloatArray: ...
    @property
    def weight(self) -> FloatArray: ...
    @property
    def least_rounds(self) -> FloatArray: ...
    @property
    def must_run(self) -> BoolArray: ...
    @property
    def free(self) -> int: ...
    @property
    def rounds(self) -> int: ...
    @property
    def makespan_weight(self) -> float: ...


def schedule(
    window: Window, breakpoints: FloatArray, log: FloatArray, limits: MixedLimits
) -> StatedAnswer:
    """Return x, (J, T): how many rounds each job gets. `log`: U at the `breakpoints`, both (B,)."""
    jobs = len(window.demand)
    x = cp.Variable((jobs, window.rounds), boolean=True)  # x_jr
    planned = cp.Variable(jobs, nonneg=True)
    f = window.done + cp.multiply(1.0 / window.paced_rounds, planned)
    left = window.remaining_rounds - planned
    welfare = cp.sum(cp.multiply(window.weight, _utility(f, breakpoints, log)))
    makespan = cp.pos(cp.max(left))  # max_j (remaining_j - planned_j)+
    constraints = [
        f <= 1,
        planned <= cp.sum(x, axis=1),
        window.demand.astype(np.float64) @ x <= float(window.free),  # sum_j n_j x_jr <= G
        *_rows_of_jobs(window, x, planned),
    ]
    objective = cp.Maximize(welfare - window.makespan_weight * makespan)
    return run_mixed(cp.Problem(objective, constraints), x, limits)


def _rows_of_jobs(window: Window, x: cp.Variable, planned: cp.Variable) -> list[cp.Constraint]:
    """Return the rows of finish-time fairness, and of jobs that may not be preempted."""
    fair, stays = np.flatnonzero(window.least_rounds > 0), np.flatnonzero(window.must_run)
    return [
        *([planned[fair] >= window.least_rounds[fair]] if len(fair) else []),
        *([x[stays] == 1] if len(stays) else []),
    ]


def _utility(f: cp.Expression, breakpoints: FloatArray, log: FloatArray) -> cp.Expression:
    """Return U(f): log f in straight pieces, the least of their lines, since log is concave."""
    slope = np.diff(log) / np.diff(breakpoints)
    lines = [log[b] + slope[b] * (f - breakpoints[b]) for b in range(len(slope))]
    return cp.minimum(*lines)


def order(
    demand: IntArray,
    count: IntArray,
    priority: FloatArray,
    *,
    free: int,
    rounds: int,
    limits: MixedLimits,
) -> StatedAnswer:
    """Minimise sum_j priority_j x mean round of j, each job with its `count` > 0 of rounds, (J,).

    The answer is x, (J, T).
    """
    x = cp.Variable((len(demand), rounds), boolean=True)  # x_jr
    mean_round = cp.multiply(1.0 / count, x @ np.arange(rounds, dtype=np.float64))
    constraints = [
        cp.sum(x, axis=1) == count,
        demand.astype(np.float64) @ x <= float(free),  # sum_j n_j x_jr <= G
    ]
    return run_mixed(cp.Problem(cp.Minimize(priority @ mean_round), constraints), x, limits)
