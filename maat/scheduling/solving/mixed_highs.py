"""Runs HiGHS on a mixed programme. mixed_solver.py checks the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from maat.scheduling.arrays import FloatArray
from maat.scheduling.solving.mixed_programme import MixedOptions, MixedProgramme

if TYPE_CHECKING:
    import highspy


@dataclass(frozen=True)
class MixedHighsAnswer:
    """What HiGHS returned, unchecked.

    `optimal`: it reports that it reached the gap. `infeasible`: it reports that there is no
    answer. `x`: shape (N,), None if it found no point. `bound`: its bound on the objective,
    infinite if it has none. `out_of_time`: its time limit ended the search.
    """

    optimal: bool
    infeasible: bool
    status: str
    x: FloatArray | None
    bound: float
    out_of_time: bool


def run_highs(programme: MixedProgramme, options: MixedOptions) -> MixedHighsAnswer:
    """Maximise on one thread with a fixed seed."""
    import highspy  # imported here because it is slow to import and few rounds need it

    highs = highspy.Highs()  # type: ignore[no-untyped-call]
    for name, option in {
        "output_flag": False,
        "threads": 1,
        "random_seed": 0,
        "mip_rel_gap": options.gap,
        "mip_max_nodes": options.nodes,
        "time_limit": options.seconds,
    }.items():
        highs.setOptionValue(name, option)
    highs.passModel(_model(programme))
    highs.run()
    status, info = highs.getModelStatus(), highs.getInfo()
    none = {highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible}
    optimal = status == highspy.HighsModelStatus.kOptimal
    feasible = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    found = feasible and status != highspy.HighsModelStatus.kUnbounded
    of_the_whole = float(info.objective_function_value) if optimal else np.inf
    bound = float(info.mip_dual_bound) if programme.whole.any() else of_the_whole
    return MixedHighsAnswer(
        optimal=optimal,
        infeasible=status in none,
        status=highs.modelStatusToString(status),
        x=np.array(highs.getSolution().col_value, dtype=np.float64) if found else None,
        bound=bound if np.isfinite(bound) and abs(bound) < 1e30 else np.inf,
        out_of_time=status == highspy.HighsModelStatus.kTimeLimit,
    )


def _model(programme: MixedProgramme) -> highspy.HighsLp:
    import highspy

    columns = len(programme.cost)
    order = np.lexsort((programme.row, programme.column))
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = columns, len(programme.row_lower)
    lp.sense_ = highspy.ObjSense.kMaximize
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = programme.cost, programme.lower, programme.upper
    lp.row_lower_, lp.row_upper_ = programme.row_lower, programme.row_upper
    if programme.whole.any():
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[int(whole)] for whole in programme.whole]
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.num_col_, lp.a_matrix_.num_row_ = lp.num_col_, lp.num_row_
    lp.a_matrix_.start_ = np.concatenate(
        ([0], np.cumsum(np.bincount(programme.column, minlength=columns)))
    )
    lp.a_matrix_.index_, lp.a_matrix_.value_ = programme.row[order], programme.value[order]
    return lp
