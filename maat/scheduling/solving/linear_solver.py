"""Solves linear programmes by one method, then by the other if the first fails.

And checks convex programmes over the same variables that CVXPY solved.

Only this module judges what the two report.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from maat.scheduling.arrays import FloatArray
from maat.scheduling.solving.linear_programme import (
    LinearAnswer,
    LinearMethod,
    LinearProgramme,
    run_clarabel,
    run_simplex,
)
from maat.scheduling.solving.papers.stated_answer import StatedAnswer
from maat.scheduling.solving.report import SolveReport, SolveStatus

_SLACK = 1e-6  # of a row's right-hand side: how far an interior point may exceed it
_MOST_LOST = 1e-4  # of the objective, and of one hundredth if that is more: what a bound may leave


@dataclass(frozen=True)
class LinearSolution:
    """The variables, shape (V,), none negative, and the report."""

    x: FloatArray
    report: SolveReport


def solve_linear(
    programme: LinearProgramme,
    *,
    present: FloatArray,
    method: LinearMethod,
    row_names: Mapping[int, str] | None = None,
) -> LinearSolution:
    """Return the best answer, or `present` if no method gives an acceptable one.

    An answer is acceptable if its method reports an optimum and it keeps the rows. The other
    method is asked if the answer of the first is not.

    Args:
        present: Shape (V,), an answer that keeps the rows.
        row_names: The rows whose prices the report keeps.
    """
    began = time.process_time()
    if (
        not np.isfinite(programme.gain).all()
        or not np.isfinite(programme.entry).all()
        or not np.isfinite(programme.most).all()
    ):
        return _present_kept(
            programme, present, began, "the programme holds a value that is not finite"
        )
    outcomes: list[str] = []
    for name, run in sorted(_LINEAR.items(), key=lambda item: item[0] is not method):
        answer = run(programme)
        outcomes.append(f"{name.value} ended with '{answer.status}'")
        if answer.optimal and _keeps_rows(programme, answer.x):
            return _accepted(
                programme,
                answer,
                began,
                name,
                row_names or {},
                fallback=name is not method,
                message="; ".join(outcomes),
            )
    return _present_kept(programme, present, began, "; ".join(outcomes))


def solve_stated(
    programme: LinearProgramme,
    state: Callable[[], StatedAnswer],
    *,
    worth: Callable[[FloatArray], float],
    row_names: Sequence[str],
) -> LinearSolution:
    """Return the answer to a programme as a paper states it.

    It is usable if its solver reports an optimum, it keeps the rows of `programme`, and its bound
    certifies it. If it is not, the report says so (`fallback`), and the variables are zero.

    Args:
        state: Solves it through CVXPY.
        worth: The objective of an answer, (V,); more is better.
        row_names: The limits of its prices.
    """
    began = time.process_time()
    stated = state()
    if not stated.optimal or stated.x is None or not _keeps_rows(programme, stated.x):
        ended = f"cvxpy ended with '{stated.status}'" + (
            " and an answer that breaks a row" if stated.optimal else ""
        )
        return _unusable(programme, ended, began)
    x = np.maximum(stated.x, 0.0)
    objective = worth(x)
    bound = max(stated.objective, objective) + stated.lost
    if not bound - objective <= _MOST_LOST * max(abs(objective), 1e-2):
        return _unusable(
            programme, f"cvxpy's answer {objective:g} is not proved: bound {bound:g}", began
        )
    prices = np.zeros(len(row_names)) if stated.prices is None else stated.prices
    report = SolveReport(
        status=SolveStatus.OPTIMAL,
        method="cvxpy",
        objective=objective,
        bound=bound,
        gap=(bound - objective) / max(abs(bound), 1e-12),
        seconds=time.process_time() - began,
        prices=dict(zip(row_names, prices.tolist(), strict=True)),
    )
    return LinearSolution(x, report)


def _unusable(programme: LinearProgramme, message: str, began: float) -> LinearSolution:
    seconds = time.process_time() - began
    report = SolveReport(
        SolveStatus.KEPT_PRESENT, "cvxpy", seconds=seconds, fallback=True, message=message
    )
    return LinearSolution(np.zeros(len(programme.gain)), report)


_LINEAR = {LinearMethod.INTERIOR_POINT: run_clarabel, LinearMethod.SIMPLEX: run_simplex}


def _keeps_rows(programme: LinearProgramme, x: FloatArray) -> bool:
    slack = _SLACK * np.maximum(np.abs(programme.most), 1.0)
    return bool(
        np.isfinite(x).all()
        and (x >= -_SLACK).all()
        and (programme.used(np.maximum(x, 0.0)) <= programme.most + slack).all()
    )


def _accepted(
    programme: LinearProgramme,
    answer: LinearAnswer,
    began: float,
    method: LinearMethod,
    row_names: Mapping[int, str],
    *,
    fallback: bool,
    message: str,
) -> LinearSolution:
    x, prices = np.maximum(answer.x, 0.0), np.maximum(answer.prices, 0.0)
    objective = float(programme.gain @ x)
    bound = max(float(programme.most @ prices), objective)
    report = SolveReport(
        status=SolveStatus.OPTIMAL,
        method=method.value,
        objective=objective,
        bound=bound,
        gap=(bound - objective) / max(abs(bound), 1e-12),
        seconds=time.process_time() - began,
        fallback=fallback,
        message=message if fallback else "",
        prices={name: float(prices[row]) for row, name in row_names.items()},
    )
    return LinearSolution(x, report)


def _present_kept(
    programme: LinearProgramme, present: FloatArray, began: float, message: str
) -> LinearSolution:
    objective = float(np.nan_to_num(programme.gain, posinf=0.0, neginf=0.0) @ present)
    report = SolveReport(
        status=SolveStatus.KEPT_PRESENT,
        method="linear",
        objective=objective,
        bound=objective,
        seconds=time.process_time() - began,
        fallback=True,
        message=f"{message}; the present shares stay",
    )
    return LinearSolution(present, report)
