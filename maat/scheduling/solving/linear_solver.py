"""Solving linear programmes: asks one method, then the other, and is the only code that reads what they say."""

from __future__ import annotations

import time
from collections.abc import Mapping
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
from maat.scheduling.solving.report import SolveReport, SolveStatus

_SLACK = 1e-6  # relative to a row's right-hand side: by how much an interior point may overstep it


@dataclass(frozen=True)
class LinearSolution:
    """The variables, shape (V,), never below zero, and the report."""

    x: FloatArray
    report: SolveReport


def solve_linear(
    programme: LinearProgramme,
    *,
    present: FloatArray,
    method: LinearMethod,
    row_names: Mapping[int, str] | None = None,
) -> LinearSolution:
    """The best answer to a linear programme, or `present` where no method gives one that keeps the rows and is not worse.

    `present`: shape (V,), an answer that keeps the rows. `row_names`: rows whose prices the report keeps. The other method is asked where
    the first one does not end with an optimum.
    """
    began = time.process_time()
    if (
        not np.isfinite(programme.gain).all()
        or not np.isfinite(programme.entry).all()
        or not np.isfinite(programme.most).all()
    ):
        return _kept(
            programme, present, began, "the programme holds a value that is no finite number"
        )
    said: list[str] = []
    for name, run in sorted(_LINEAR.items(), key=lambda item: item[0] is not method):
        answer = run(programme)
        said.append(f"{name.value} ended with '{answer.status}'")
        if answer.optimal and _keeps_rows(programme, answer.x):
            return _believed(
                programme,
                answer,
                began,
                name,
                row_names or {},
                fallback=name is not method,
                message="; ".join(said),
            )
    return _kept(programme, present, began, "; ".join(said))


_LINEAR = {LinearMethod.INTERIOR_POINT: run_clarabel, LinearMethod.SIMPLEX: run_simplex}


def _keeps_rows(programme: LinearProgramme, x: FloatArray) -> bool:
    slack = _SLACK * np.maximum(np.abs(programme.most), 1.0)
    return bool(
        np.isfinite(x).all()
        and (x >= -_SLACK).all()
        and (programme.used(np.maximum(x, 0.0)) <= programme.most + slack).all()
    )


def _believed(
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


def _kept(
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
