"""Solving mixed programmes: runs HiGHS, and is the only code that reads what it says of one."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from maat.scheduling.solving import mixed_highs
from maat.scheduling.solving.mixed_highs import HighsSaid
from maat.scheduling.solving.mixed_programme import (
    MixedAnswer,
    MixedOptions,
    MixedProgramme,
    breaks,
)
from maat.scheduling.solving.report import SolveReport, SolveStatus

_EXACT = 1e-8  # relative; a smaller gap is rounding


def solve_mixed(programme: MixedProgramme, options: MixedOptions = MixedOptions()) -> MixedAnswer:
    """The best answer that HiGHS finds to a programme of a policy's own, checked against every row before it is believed.

    No usable answer is a report that says so: what then stays is for the policy to say.
    """
    began = time.process_time()
    said = mixed_highs.run_highs(programme, options)
    answer = _judged(programme, said, began, options)
    return replace(answer, report=replace(answer.report, out_of_time=said.out_of_time))


def _judged(
    programme: MixedProgramme, said: HighsSaid, began: float, options: MixedOptions
) -> MixedAnswer:
    """What HiGHS said where it keeps every row, with its gap; else no answer, and why."""
    x = (
        None
        if said.x is None or not np.isfinite(said.x).all()
        else np.where(programme.whole, np.round(said.x), said.x)
    )
    if x is None or breaks(programme, x):
        message = f"HiGHS ended with '{said.status}'" + (
            "" if x is None else " and an answer that breaks a row"
        )
        report = SolveReport(
            SolveStatus.KEPT_PRESENT,
            "highs",
            seconds=time.process_time() - began,
            fallback=True,
            message=message,
        )
        return MixedAnswer(None, report, infeasible=said.infeasible)
    objective = float(programme.cost @ x)
    bound = max(said.bound if np.isfinite(said.bound) else _box_bound(programme), objective)
    gap = (bound - objective) / max(abs(bound), abs(objective), 1e-300)
    proved = said.optimal or gap <= max(options.gap, _EXACT)
    status = SolveStatus.OPTIMAL if proved else SolveStatus.WITHIN_GAP
    return MixedAnswer(
        x, SolveReport(status, "highs", objective, bound, gap, time.process_time() - began)
    )


def _box_bound(programme: MixedProgramme) -> float:
    """What the bounds of the columns alone allow; the largest number where they allow everything."""
    best = np.where(programme.cost > 0, programme.upper, programme.lower)
    total = float(np.where(programme.cost != 0, programme.cost * best, 0.0).sum())
    return total if np.isfinite(total) else float(np.finfo(np.float64).max)
