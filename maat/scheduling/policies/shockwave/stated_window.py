"""Shockwave's two programmes over a window as the paper states them, through CVXPY.

Both are solved over the rounds themselves, whatever the demands. Answers are checked here against
the window, and measured by its objective.
"""

from __future__ import annotations

import time

import numpy as np

from maat.scheduling.arrays import BoolArray, FloatArray, IntArray
from maat.scheduling.policies.shockwave.window import BREAKPOINTS, LOG, Window
from maat.scheduling.solving.mixed_programme import MixedOptions
from maat.scheduling.solving.mixed_solver import report_of_stated
from maat.scheduling.solving.papers.stated_answer import StatedAnswer
from maat.scheduling.solving.report import SolveReport


def share_by_cvxpy(window: Window, options: MixedOptions) -> tuple[IntArray | None, SolveReport]:
    """Return rounds of every job, shape (J, T), as `share_rounds` does; None if there are none."""
    from maat.scheduling.solving.papers import shockwave
    from maat.scheduling.solving.papers.cvxpy_solver import MixedLimits

    began = time.process_time()
    limits = MixedLimits(options.gap, options.seconds, options.nodes)
    stated = shockwave.schedule(window, BREAKPOINTS, LOG, limits)
    table = _table(window.demand, window.free, stated)
    if table is not None and not window.is_fair(table.sum(axis=1)):
        table = None
    objective = None if table is None else window.objective(table.sum(axis=1))
    return table, report_of_stated(stated, objective, options, began=began)


def order_by_cvxpy(
    window: Window, table: IntArray, priority: FloatArray, options: MixedOptions
) -> tuple[IntArray, SolveReport]:
    """Return the rounds of every job, (J, T), those of higher `priority` (J,) per round earlier.

    Every job keeps its number of rounds. The table is returned as it is if no answer is usable.
    """
    from maat.scheduling.solving.papers import shockwave
    from maat.scheduling.solving.papers.cvxpy_solver import MixedLimits

    began = time.process_time()
    count = table.sum(axis=1)
    rows = np.flatnonzero(count > 0)
    if not len(rows):
        return table, SolveReport()
    limits = MixedLimits(options.gap, options.seconds, options.nodes)
    stated = shockwave.order(
        window.demand[rows],
        count[rows],
        priority[rows],
        free=window.free,
        rounds=window.rounds,
        limits=limits,
    )
    ordered = _table(window.demand[rows], window.free, stated)
    if ordered is None or (ordered.sum(axis=1) != count[rows]).any():
        return table, report_of_stated(stated, None, options, began=began)
    mean_round = ordered @ np.arange(window.rounds) / count[rows]
    report = report_of_stated(stated, -float(priority[rows] @ mean_round), options, began=began)
    whole = np.zeros_like(table)
    whole[rows] = ordered
    return whole, report


def _table(demand: IntArray, free: int, stated: StatedAnswer) -> IntArray | None:
    """Return the answer's rounds, whole and within the GPUs of every round; None if it has none."""
    if stated.x is None:
        return None
    table = np.round(stated.x).astype(np.int64)
    fits: BoolArray = demand @ table <= free
    kept = fits.all() and (table >= 0).all() and (table <= 1).all()
    return table if kept else None
