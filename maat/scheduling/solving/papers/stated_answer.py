"""Answers to stated programmes, as data. This module needs no CVXPY."""

from __future__ import annotations

from dataclasses import dataclass

from maat.scheduling.arrays import FloatArray


@dataclass(frozen=True)
class StatedAnswer:
    """What a solver returned through CVXPY, unchecked.

    `optimal`: it reports that it reached its gap. `infeasible`: it reports that there is no answer.
    `x`: the values of the variables, None if it found no point. `lost`: the most by which another
    answer can be better, by the solver's own bound; infinite if it has none. `objective`: as the
    solver reports it, in the paper's unit. `out_of_time`: its time limit ended the search.
    `prices`: of one place under each limit, (R,), if they were asked for.
    """

    optimal: bool
    infeasible: bool
    status: str
    x: FloatArray | None
    lost: float
    objective: float
    out_of_time: bool = False
    prices: FloatArray | None = None
