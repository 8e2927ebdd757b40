"""Packs counts of rounds into a window, where demands do not divide each other.

It improves a packing by exchanges, which always end, and states no programme. J jobs, T rounds,
tables (J, T) of zeros and ones. The caller measures what is lost against the counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.policies.shockwave.window import Window, share_counts, share_rounds
from maat.scheduling.solving.mixed_programme import MixedOptions
from maat.scheduling.solving.report import SolveReport, SolveStatus

PACKING_GAP = 2e-2  # relative gap to the bound of the counts up to which packed rounds are taken
# Branch-and-bound nodes if rounds are solved for: more never changed a simulated figure by the gap.
_MOST_NODES = 100
_CANDIDATES = 12  # jobs of most gain that one step tries
_NEGLIGIBLE = 1e-12


def share_packed(window: Window, options: MixedOptions) -> tuple[IntArray | None, SolveReport]:
    """Return rounds of every job, as `share_rounds` does, by packing counts.

    If the bound of the counts proves that little is lost, no programme over rounds is solved.
    """
    count, by_counts = share_counts(window, options)
    if count is None:
        return None, by_counts
    table = packed(window, count)
    objective = window.objective(table.sum(axis=1))
    gap = (by_counts.bound - objective) / max(abs(by_counts.bound), abs(objective), 1e-300)
    if gap <= PACKING_GAP and window.is_fair(table.sum(axis=1)):
        status = SolveStatus.OPTIMAL if gap <= options.gap else SolveStatus.WITHIN_GAP
        return table, replace(
            by_counts,
            status=status,
            objective=objective,
            bound=max(by_counts.bound, objective),
            gap=max(gap, 0.0),
        )
    rounds, report = share_rounds(
        window,
        replace(options, gap=max(options.gap, PACKING_GAP), nodes=min(options.nodes, _MOST_NODES)),
    )
    return rounds, report.after(by_counts)


def packed(window: Window, count: IntArray) -> IntArray:
    """Return a table with about `count` (J,) rounds for each job.

    All rounds if they can be packed, else the table that loses the least objective.
    """
    worth = window.utilities()
    last = (
        worth[np.arange(len(window)), count]
        - worth[np.arange(len(window)), np.maximum(count - 1, 0)]
    )
    by_width = np.lexsort((-count, -window.demand, ~window.must_run))
    by_worth = np.lexsort((-window.demand, -last / window.demand, ~window.must_run))
    tables = [
        _first_fit(window, count, order, early=early)
        for order, early in ((by_worth, True), (by_width, False), (by_worth, False))
    ]
    best = max(tables, key=lambda table: window.objective(table.sum(axis=1)))
    return best if (best.sum(axis=1) == count).all() else _improved(window, best, worth)


def _first_fit(window: Window, count: IntArray, order: IntArray, *, early: bool) -> IntArray:
    """Put each job in the earliest rounds with room, or in those with most room.

    A job gets fewer rounds than `count` if fewer have room.
    """
    table = np.zeros((len(window), window.rounds), dtype=np.int64)
    room = np.full(window.rounds, window.free)
    for row in order.tolist():
        at = np.arange(window.rounds) if early else np.argsort(-room, kind="stable")
        fits = at[room[at] >= window.demand[row]][: count[row]]
        room[fits] -= window.demand[row]
        table[row, fits] = 1
    return table


@dataclass(frozen=True)
class _Exchange:
    """Jobs `out` give up a round to another job, and lose `loss` together."""

    round: int
    out: IntArray
    loss: float


def _improved(window: Window, table: IntArray, worth: FloatArray) -> IntArray:
    """Give jobs one more round at the cost of others while the objective rises."""
    reached = window.objective(table.sum(axis=1))
    for _ in range(3 * window.rounds):
        better = _step(window, table, worth, reached)
        if better is None:
            break
        table, reached = better, window.objective(better.sum(axis=1))
    return table


def _step(window: Window, table: IntArray, worth: FloatArray, reached: float) -> IntArray | None:
    gain, loss = _margins(window, table, worth)
    for row in np.argsort(-gain, kind="stable")[:_CANDIDATES].tolist():
        if gain[row] <= _NEGLIGIBLE * abs(reached):
            return None
        exchange = _cheapest(window, table, row, loss)
        if exchange is not None and exchange.loss < gain[row]:
            tried = table.copy()
            tried[exchange.out, exchange.round], tried[row, exchange.round] = 0, 1
            if window.objective(tried.sum(axis=1)) > reached + _NEGLIGIBLE * abs(reached):
                return tried
    return None


def _margins(window: Window, table: IntArray, worth: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the gain of one more round and the loss of one less, shapes (J,).

    Both include the effect on the longest remaining time.
    """
    count, rows = table.sum(axis=1), np.arange(len(window))
    gain = worth[rows, np.minimum(count + 1, window.rounds)] - worth[rows, count]
    loss = np.where(
        window.must_run | (count == 0),
        np.inf,
        worth[rows, count] - worth[rows, np.maximum(count - 1, 0)],
    )
    left = window.left_after(count)
    longest = int(np.argmax(left))
    second = max(float(np.delete(left, longest).max(initial=0.0)), 0.0)
    gain[longest] += window.makespan_weight * min(max(float(left[longest]) - second, 0.0), 1.0)
    loss += window.makespan_weight * np.maximum(
        np.minimum(left + 1.0, window.remaining_rounds) - left[longest], 0.0
    )
    return gain, loss


def _cheapest(window: Window, table: IntArray, row: int, loss: FloatArray) -> _Exchange | None:
    """Return the cheapest round in which others make room for a job, or None."""
    found: _Exchange | None = None
    room = window.free - window.demand @ table
    for number in np.flatnonzero(table[row] == 0).tolist():
        there = np.flatnonzero(table[:, number])
        out = _giving_way(window.demand, there, int(window.demand[row] - room[number]), loss)
        if out is not None and (found is None or loss[out].sum() < found.loss):
            found = _Exchange(number, out, float(loss[out].sum()))
    return found


def _giving_way(
    demand: IntArray, there: IntArray, needed: int, loss: FloatArray
) -> IntArray | None:
    """Return jobs that free `needed` GPUs at little loss, or None.

    Either one of the jobs `there`, or several by loss per GPU; no job if none needs to give way.
    """
    if needed <= 0:
        return there[:0]
    by_loss = there[np.argsort(loss[there] / demand[there], kind="stable")]
    enough = int(np.searchsorted(np.cumsum(demand[by_loss]), needed))
    if enough == len(by_loss):
        return None
    several, single = by_loss[: enough + 1], there[demand[there] >= needed]
    if len(single) and loss[single].min() < loss[several].sum():
        return single[[int(np.argmin(loss[single]))]]
    return several


# ---- which rounds


def earliest(window: Window, table: IntArray, priority: FloatArray) -> IntArray:
    """Move rounds of jobs with higher `priority` (J,) per round earlier.

    Every job keeps its number of rounds. Rounds are sorted, and jobs exchanged between two of them,
    while that lowers sum_j priority_j x mean round of j.
    """
    count = table.sum(axis=1)
    weight: FloatArray = np.where(count > 0, priority / np.maximum(count, 1), 0.0)
    for _ in range(10):
        table = table[:, np.argsort(-(weight @ table), kind="stable")]
        moved = False
        for row in np.argsort(-weight, kind="stable").tolist():
            for early in range(window.rounds):
                moved |= not table[row, early] and _moved_to(window, table, row, early, weight)
        if not moved:
            break
    return table


def _moved_to(window: Window, table: IntArray, row: int, early: int, weight: FloatArray) -> bool:
    """Exchange one of the job's later rounds for this one, in place.

    The last round that leaves room is taken. Returns False if none does.
    """
    demand = window.demand
    for late in reversed((early + 1 + np.flatnonzero(table[row, early + 1 :])).tolist()):
        needed = int(demand[row] - (window.free - demand @ table[:, early]))
        others = np.flatnonzero(
            (table[:, early] == 1) & (table[:, late] == 0) & (weight < weight[row])
        )
        out = _giving_way(demand, others, needed, weight)
        room = window.free - demand @ table[:, late] + demand[row]
        if out is not None and demand[out].sum() <= room and weight[out].sum() < weight[row]:
            table[row, early], table[row, late] = 1, 0
            table[out, early], table[out, late] = 0, 1
            return True
    return False
