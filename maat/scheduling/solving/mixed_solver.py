"""Solves mixed programmes by HiGHS, and checks what HiGHS reports.

No other module judges the status of a mixed solve, also of one that CVXPY asked HiGHS for.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from maat.scheduling.solving import mixed_highs
from maat.scheduling.solving.mixed_highs import MixedHighsAnswer
from maat.scheduling.solving.mixed_programme import (
    MixedAnswer,
    MixedOptions,
    MixedProgramme,
    breaks,
)
from maat.scheduling.solving.papers.stated_answer import StatedAnswer
from maat.scheduling.solving.report import SolveReport, SolveStatus

_EXACT = 1e-8  # relative; a smaller gap is rounding


def solve_mixed(programme: MixedProgramme, options: MixedOptions = MixedOptions()) -> MixedAnswer:
    """Return the best answer that HiGHS finds, checked against every row.

    If no answer is usable the report says so; the policy decides what happens then.
    """
    began = time.process_time()
    highs_answer = mixed_highs.run_highs(programme, options)
    answer = _checked(programme, highs_answer, began, options)
    return replace(answer, report=replace(answer.report, out_of_time=highs_answer.out_of_time))


def _checked(
    programme: MixedProgramme, highs_answer: MixedHighsAnswer, began: float, options: MixedOptions
) -> MixedAnswer:
    """Return the answer of HiGHS with its gap if it keeps every row.

    Otherwise return no answer, and why.
    """
    x = (
        None
        if highs_answer.x is None or not np.isfinite(highs_answer.x).all()
        else np.where(programme.whole, np.round(highs_answer.x), highs_answer.x)
    )
    if x is None or breaks(programme, x):
        message = f"HiGHS ended with '{highs_answer.status}'" + (
            "" if x is None else " and an answer that breaks a row"
        )
        report = SolveReport(
            SolveStatus.KEPT_PRESENT,
            "highs",
            seconds=time.process_time() - began,
            fallback=True,
            message=message,
        )
        return MixedAnswer(None, report, infeasible=highs_answer.infeasible)
    objective = float(programme.cost @ x)
    bound = max(
        highs_answer.bound if np.isfinite(highs_answer.bound) else _box_bound(programme), objective
    )
    gap = (bound - objective) / max(abs(bound), abs(objective), 1e-300)
    proved = highs_answer.optimal or gap <= max(options.gap, _EXACT)
    status = SolveStatus.OPTIMAL if proved else SolveStatus.WITHIN_GAP
    return MixedAnswer(
        x, SolveReport(status, "highs", objective, bound, gap, time.process_time() - began)
    )


def report_of_stated(
    stated: StatedAnswer, objective: float | None, options: MixedOptions, *, began: float
) -> SolveReport:
    """Return the report of an answer to a programme as a paper states it, through CVXPY.

    `objective`: of the answer, which keeps every row; None if it breaks one or there is none.
    """
    seconds = time.process_time() - began
    if objective is None:
        message = f"cvxpy ended with '{stated.status}'" + (
            "" if stated.x is None else " and an answer that breaks a row"
        )
        return SolveReport(
            SolveStatus.KEPT_PRESENT,
            "cvxpy",
            seconds=seconds,
            fallback=True,
            out_of_time=stated.out_of_time,
            message=message,
        )
    bound = min(objective + stated.lost, float(np.finfo(np.float64).max))
    gap = (bound - objective) / max(abs(bound), abs(objective), 1e-300)
    proved = stated.optimal or gap <= max(options.gap, _EXACT)
    status = SolveStatus.OPTIMAL if proved else SolveStatus.WITHIN_GAP
    return SolveReport(
        status, "cvxpy", objective, bound, gap, seconds, out_of_time=stated.out_of_time
    )


def _box_bound(programme: MixedProgramme) -> float:
    """Return the bound that the column bounds alone give.

    If it is infinite, return the largest float.
    """
    best = np.where(programme.cost > 0, programme.upper, programme.lower)
    total = float(np.where(programme.cost != 0, programme.cost * best, 0.0).sum())
    return total if np.isfinite(total) else float(np.finfo(np.float64).max)
