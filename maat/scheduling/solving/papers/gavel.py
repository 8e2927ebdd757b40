"""Gavel's policies as programmes over X (Narayanan et al., OSDI 2020, sections 3.1 and 4).

X_mj is the part of the time that job m spends on GPU type j; a pair of jobs that share GPUs is one
more row of X (section 3.1). Every policy has the same constraints:

    0 <= X_mj <= 1                                  for all (m, j)     (1)
    sum_j X_mj <= 1                                 for all m          (2)
    sum_m X_mj scale_factor_m <= num_workers_j      for all j          (3)

and an objective of throughput(m, X) = sum_j T_mj X_mj, the *effective throughput* of job m. Each
objective names the section and the policy that it is of. Every answer comes with a bound by its
prices (gavel_bounds.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import cvxpy as cp
import numpy as np
from scipy.sparse import csr_array

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.solving.papers.cvxpy_solver import price_of, run_convex
from maat.scheduling.solving.papers.gavel_bounds import (
    Prices,
    Rows,
    least_rho,
    most_gain,
    most_pace,
)
from maat.scheduling.solving.papers.stated_answer import StatedAnswer


@dataclass(frozen=True)
class GavelRound:
    """V entries of X, J jobs, R limits; K is the number of throughputs.

    `entry`, `job`, `throughput`, (K,): T of a job in an entry of X, in any unit of the job's own;
    an entry for two jobs has two.
    `usage`: GPUs (scale_factor) and places that an entry takes under every limit, (V, R).
    `num_workers`: what every limit has, (R,).
    """

    entry: IntArray
    job: IntArray
    throughput: FloatArray
    usage: IntArray
    num_workers: IntArray
    jobs: int

    def effective(self, X: cp.Variable, rows: IntArray) -> cp.Expression:
        """Return throughput(m, X) of these jobs (Gavel section 3.1)."""
        return self._throughputs[rows] @ X

    def weighed(self, rows: IntArray, weight: FloatArray) -> FloatArray:
        """Return sum_m weight_m T_mj over these jobs, shape (V,). `weight`: one of each."""
        found: FloatArray = self._throughputs[rows].T @ weight
        return found

    @property
    def _throughputs(self) -> csr_array:
        return csr_array(
            (self.throughput, (self.job, self.entry)), shape=(self.jobs, len(self.usage))
        )


def total_throughput(data: GavelRound, weight: FloatArray) -> StatedAnswer:
    """Maximise sum_m w_m throughput(m, X). `weight`: (J,).

    Section 4.2, minimise cost: the numerator, which is the policy where all types cost the same.
    """
    X, every = _shares(data), np.arange(data.jobs)
    gained = cp.multiply(weight, data.effective(X, every))
    gain = data.weighed(every, weight)
    return _solved(
        data, X, cp.Maximize(cp.sum(gained)), bound=lambda rows, by: most_gain(gain, rows, by)
    )


def largest_minimum(data: GavelRound, rows: IntArray, need: FloatArray) -> StatedAnswer:
    """Maximise min_m throughput(m, X) / need_m (section 4.1, max-min fairness, LAS).

    need_m = w_m throughput(m, X_equal) / scale_factor_m. `rows`, `need`: of the jobs counted.
    Written as the most that is not above any of these, so that each has a price.
    """
    X, least = _shares(data), cp.Variable()
    normalised = cp.multiply(1.0 / need, data.effective(X, rows))

    def bound(constraints: Rows, by: Prices) -> float:
        gain = data.weighed(rows, by.further / need)
        return most_pace(gain, float(by.further.sum()), constraints, by)

    return _solved(data, X, cp.Maximize(least), normalised >= least, bound=bound)


def makespan(data: GavelRound, rows: IntArray, num_steps: FloatArray) -> StatedAnswer:
    """Minimise max_m num_steps_m / throughput(m, X) (section 4.2, minimise makespan).

    Written as: the least makespan that is not below any of these. Each is solved for its
    throughput: of a job that is nearly done, the inverse of a throughput near zero would be lost
    in the solver's tolerance.
    """
    X, longest = _shares(data), cp.Variable(pos=True)
    ends = data.effective(X, rows) >= num_steps * cp.inv_pos(longest)

    def bound(constraints: Rows, by: Prices) -> float:
        gain = data.weighed(rows, by.further)
        pace = most_pace(gain, float(by.further @ num_steps), constraints, by)
        return 1.0 / max(pace, 1e-300)

    return _solved(data, X, cp.Minimize(longest), ends, bound=bound)


def finish_time_fairness(
    data: GavelRound,
    rows: IntArray,
    *,
    elapsed: FloatArray,
    num_steps: FloatArray,
    isolated: FloatArray,
) -> StatedAnswer:
    """Minimise max_m rho(m, X) (section 4.2, finish-time fairness, Themis's measure).

    rho(m, X) = (t_m + num_steps_m / throughput(m, X)) / t_isolated_m. Written as the least rho
    that is not below any of these, each solved for its throughput as in `makespan`.
    """
    X, rho = _shares(data), cp.Variable()
    past, to_come = elapsed / isolated, num_steps / isolated
    fair = data.effective(X, rows) >= cp.multiply(to_come, cp.inv_pos(rho - past))

    def bound(constraints: Rows, by: Prices) -> float:
        gain = data.weighed(rows, by.further)
        return least_rho(gain, constraints, by, past=past, to_come=to_come)

    return _solved(data, X, cp.Minimize(rho), fair, bound=bound)


def _shares(data: GavelRound) -> cp.Variable:
    return cp.Variable(len(data.usage))


def _solved(
    data: GavelRound,
    X: cp.Variable,
    objective: cp.Minimize | cp.Maximize,
    *further: cp.Constraint,
    bound: Callable[[Rows, Prices], float],
) -> StatedAnswer:
    """Solve under the constraints of section 3.1 and at most one further kind.

    The limits' prices come with the answer, and what it can lack by the `bound` of all prices.
    """
    there, row = np.unique(data.job, return_inverse=True)
    of_job = csr_array((np.ones(len(row)), (row, data.entry)), shape=(len(there), len(data.usage)))
    rows = Rows(of_job, data.usage, np.maximum(data.num_workers, 0))
    one_each = of_job @ X <= 1  # (2)
    workers = data.usage.T.astype(np.float64) @ X <= rows.num_workers  # (3)
    at_least_zero = X >= 0  # (1): X_mj <= 1 follows from (2)
    problem = cp.Problem(objective, [at_least_zero, one_each, workers, *further])
    answer = run_convex(problem, X)
    by = Prices(
        jobs=price_of(one_each, len(there)),
        limits=price_of(workers, len(data.num_workers)),
        further=np.concatenate([price_of(each, each.size) for each in further] or [np.zeros(0)]),
    )
    sign = 1.0 if isinstance(objective, cp.Maximize) else -1.0
    lost = max(sign * (bound(rows, by) - answer.objective), 0.0) if answer.optimal else np.inf
    return replace(answer, prices=by.limits, lost=lost)
