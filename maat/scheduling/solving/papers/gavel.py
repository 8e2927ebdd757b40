"""Gavel's policies as programmes over X (Narayanan et al., OSDI 2020, sections 3.1 and 4).

X_mj is the part of the time that job m spends on GPU type j; a pair of jobs that share GPUs is one
more row of X (section 3.1). Every policy has the same constraints:

    0 <= X_mj <= 1;   sum_j X_mj <= 1 of every job;   sum_m X_mj scale_factor_m <= num_workers_j

and an objective of throughput(m, X) = sum_j T_mj X_mj, the *effective throughput* of job m.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import cvxpy as cp
import numpy as np
from scipy.sparse import csr_array

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.solving.papers.cvxpy_solver import price_of, run_convex
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
        T = csr_array((self.throughput, (self.job, self.entry)), shape=(self.jobs, len(self.usage)))
        return T[rows] @ X


def total_throughput(data: GavelRound, weight: FloatArray) -> StatedAnswer:
    """Maximise sum_m w_m throughput(m, X) (max-sum-throughput). `weight`: (J,)."""
    X, every = _shares(data), np.arange(data.jobs)
    gained = cp.multiply(weight, data.effective(X, every))
    return _solved(data, X, cp.Maximize(cp.sum(gained)))


def largest_minimum(data: GavelRound, rows: IntArray, need: FloatArray) -> StatedAnswer:
    """Maximise min_m throughput(m, X) / need_m (section 4.1, max-min fairness).

    need_m = w_m throughput(m, X_equal) / scale_factor_m. `rows`, `need`: of the jobs counted.
    """
    X = _shares(data)
    normalised = cp.multiply(1.0 / need, data.effective(X, rows))
    return _solved(data, X, cp.Maximize(cp.min(normalised)))


def makespan(data: GavelRound, rows: IntArray, num_steps: FloatArray) -> StatedAnswer:
    """Minimise max_m num_steps_m / throughput(m, X) (section 4.2, makespan).

    Written as: the least makespan that is not below any of these. Each is solved for its
    throughput: of a job that is nearly done, the inverse of a throughput near zero would be lost
    in the solver's tolerance.
    """
    X, longest = _shares(data), cp.Variable(pos=True)
    ends = data.effective(X, rows) >= num_steps * cp.inv_pos(longest)
    return _solved(data, X, cp.Minimize(longest), ends)


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
    to_come = rho - elapsed / isolated  # (num_steps_m / throughput(m, X)) / t_isolated_m, at most
    fair = data.effective(X, rows) >= cp.multiply(num_steps / isolated, cp.inv_pos(to_come))
    return _solved(data, X, cp.Minimize(rho), fair)


def _shares(data: GavelRound) -> cp.Variable:
    return cp.Variable(len(data.usage))


def _solved(
    data: GavelRound,
    X: cp.Variable,
    objective: cp.Minimize | cp.Maximize,
    *further: cp.Constraint,
) -> StatedAnswer:
    """Solve under the constraints of section 3.1 and `further` ones.

    The limits' prices come with the answer.
    """
    there, row = np.unique(data.job, return_inverse=True)
    of_job = csr_array((np.ones(len(row)), (row, data.entry)), shape=(len(there), len(data.usage)))
    workers = data.usage.T.astype(np.float64) @ X <= np.maximum(data.num_workers, 0)
    constraints = [
        X >= 0,  # 0 <= X_mj; X_mj <= 1 follows from the next line
        of_job @ X <= 1,  # sum_j X_mj <= 1
        workers,  # sum_m X_mj scale_factor_m <= num_workers_j
        *further,
    ]
    answer = run_convex(cp.Problem(objective, constraints), X)
    return replace(answer, prices=price_of(workers, len(data.num_workers)))
