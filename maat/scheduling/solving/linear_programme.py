"""Linear programmes as data, and how Clarabel and HiGHS solve them.

linear_solver.py decides whether to accept an answer.

    maximise  sum_v gain_v x_v   with  A x <= most,  x >= 0
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.errors import ParameterError

if TYPE_CHECKING:
    import highspy


class LinearMethod(StrEnum):
    """Which of several equally good answers is returned.

    The interior point returns the middle of them all, the simplex method one corner.
    """

    INTERIOR_POINT = "interior-point"
    SIMPLEX = "simplex"


@dataclass(frozen=True)
class LinearProgramme:
    """V variables, R rows, Z entries of A.

    gain: shape (V,). row, column, entry: (Z,), no (row, column) twice. most: (R,).
    """

    gain: FloatArray
    row: IntArray
    column: IntArray
    entry: FloatArray
    most: FloatArray

    def used(self, x: FloatArray) -> FloatArray:
        """Return A x, shape (R,)."""
        used: FloatArray = np.bincount(
            self.row, weights=self.entry * x[self.column], minlength=len(self.most)
        ).astype(np.float64)
        return used


@dataclass(frozen=True)
class LinearAnswer:
    """What a solver returned, unchecked.

    `optimal`: it reports an optimum. `x`: shape (V,). `prices`: of one unit of each row, (R,).
    """

    optimal: bool
    status: str
    x: FloatArray
    prices: FloatArray


def run_clarabel(programme: LinearProgramme) -> LinearAnswer:
    """Solve by an interior point: of equally good answers, the analytic centre.

    Raises:
        ParameterError: Clarabel is not installed.
    """
    try:
        import clarabel
    except ImportError as missing:
        raise ParameterError(
            "needs the package clarabel, which is not installed",
            field="linear_method",
            value=LinearMethod.INTERIOR_POINT.value,
            remedy=f"Install maat[policies], or use {LinearMethod.SIMPLEX.value}.",
        ) from missing
    from scipy import sparse

    count, rows = len(programme.gain), len(programme.most)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    own = np.arange(count)
    constraints = sparse.csc_matrix(
        (
            np.concatenate((programme.entry, np.full(count, -1.0))),
            (np.concatenate((programme.row, rows + own)), np.concatenate((programme.column, own))),
        ),
        shape=(rows + count, count),
    )
    bound = np.concatenate((programme.most, np.zeros(count)))
    cones = [clarabel.NonnegativeConeT(rows + count)]
    solution = clarabel.DefaultSolver(
        sparse.csc_matrix((count, count)), -programme.gain, constraints, bound, cones, settings
    ).solve()
    optimal = solution.status == clarabel.SolverStatus.Solved
    return LinearAnswer(
        optimal, str(solution.status), np.array(solution.x), np.array(solution.z)[:rows]
    )


def run_simplex(programme: LinearProgramme) -> LinearAnswer:
    """Solve by HiGHS: of equally good answers, a corner."""
    import highspy

    highs = highspy.Highs()  # type: ignore[no-untyped-call]
    options: dict[str, bool | int | str] = {
        "output_flag": False,
        "threads": 1,
        "random_seed": 0,
        "solver": "simplex",
    }
    for name, option in options.items():
        highs.setOptionValue(name, option)
    highs.passModel(_highs_model(programme))
    highs.run()
    status, solution = highs.getModelStatus(), highs.getSolution()
    count, rows = len(programme.gain), len(programme.most)
    x, duals = (
        np.array(solution.col_value, dtype=np.float64),
        np.array(solution.row_dual, dtype=np.float64),
    )
    return LinearAnswer(
        optimal=status == highspy.HighsModelStatus.kOptimal,
        status=highs.modelStatusToString(status),
        x=x if len(x) == count else np.zeros(count),
        prices=duals if len(duals) == rows else np.zeros(rows),
    )


def _highs_model(programme: LinearProgramme) -> highspy.HighsLp:
    import highspy

    count, rows = len(programme.gain), len(programme.most)
    order = np.lexsort((programme.row, programme.column))
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = count, rows
    lp.sense_ = highspy.ObjSense.kMaximize
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = (
        programme.gain,
        np.zeros(count),
        np.full(count, highspy.kHighsInf),
    )
    lp.row_lower_, lp.row_upper_ = np.full(rows, -highspy.kHighsInf), programme.most
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.num_col_, lp.a_matrix_.num_row_ = count, rows
    lp.a_matrix_.start_ = np.concatenate(
        ([0], np.cumsum(np.bincount(programme.column, minlength=count)))
    )
    lp.a_matrix_.index_, lp.a_matrix_.value_ = programme.row[order], programme.entry[order]
    return lp
