"""Runs HiGHS on a whole assignment programme. solver.py checks the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from maat.scheduling.arrays import FloatArray
from maat.scheduling.solving.assignment.problem import AssignmentProblem

if TYPE_CHECKING:
    import highspy


@dataclass(frozen=True)
class HighsAnswer:
    """What HiGHS returned, unchecked.

    `optimal`: HiGHS reports that it reached the requested gap. `x`: shape (P,). `bound`: its bound
    on the objective, infinite if it has none. `out_of_time`: its time limit ended the search.
    """

    optimal: bool
    status: str
    x: FloatArray
    bound: float
    out_of_time: bool = False


def run_highs(problem: AssignmentProblem, *, gap: float, seconds: float) -> HighsAnswer:
    """Maximise by branch and bound to a relative gap, within wall seconds.

    Uses one thread and a fixed seed.
    """
    import highspy  # imported here because it is slow to import and few rounds need it

    highs = highspy.Highs()  # type: ignore[no-untyped-call]
    for name, option in {
        "output_flag": False,
        "threads": 1,
        "random_seed": 0,
        "mip_rel_gap": gap,
        "mip_abs_gap": 0.0 if gap == 0 else 1e-6,
        "time_limit": seconds,
    }.items():
        highs.setOptionValue(name, option)
    highs.passModel(_model(problem))
    highs.run()
    status = highs.getModelStatus()
    bound = float(highs.getInfo().mip_dual_bound)
    x = np.array(highs.getSolution().col_value, dtype=np.float64)
    return HighsAnswer(
        optimal=status == highspy.HighsModelStatus.kOptimal,
        status=highs.modelStatusToString(status),
        x=x if len(x) == len(problem.value) else np.zeros(len(problem.value)),
        bound=bound if np.isfinite(bound) else np.inf,
        out_of_time=status == highspy.HighsModelStatus.kTimeLimit,
    )


def _model(problem: AssignmentProblem) -> highspy.HighsLp:
    """Build the model: columns are pairs; rows are jobs, then limits.

    A job's row allows one pair, a limit's row its places.
    """
    import highspy

    pairs = len(problem.value)
    _, job_row = np.unique(problem.job, return_inverse=True)
    jobs = int(job_row[-1]) + 1
    usage = problem.usage
    pair, limit = np.nonzero(usage)
    column = np.concatenate((np.arange(pairs), pair))
    order = np.argsort(column, kind="stable")
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = pairs, jobs + len(problem.capacity)
    lp.sense_ = highspy.ObjSense.kMaximize
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = problem.value, np.zeros(pairs), np.ones(pairs)
    lp.integrality_ = [highspy.HighsVarType.kInteger] * pairs
    lp.row_lower_ = np.full(lp.num_row_, -highspy.kHighsInf)
    lp.row_upper_ = np.concatenate((np.ones(jobs), np.maximum(problem.capacity, 0)))
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.num_col_, lp.a_matrix_.num_row_ = lp.num_col_, lp.num_row_
    lp.a_matrix_.start_ = np.concatenate(([0], np.cumsum(np.bincount(column, minlength=pairs))))
    lp.a_matrix_.index_ = np.concatenate((job_row, jobs + limit))[order]
    lp.a_matrix_.value_ = np.concatenate((np.ones(pairs), usage[pair, limit].astype(np.float64)))[
        order
    ]
    return lp
