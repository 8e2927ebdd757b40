"""Shockwave's two programmes over a window of rounds.

The first finds how many rounds each job gets, the second which. J jobs, T rounds, B breakpoints of
the logarithm. Seconds are counted in rounds, so that coefficients stay near one.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from maat.scheduling.arrays import BoolArray, FloatArray, IntArray
from maat.scheduling.solving.mixed_programme import MixedOptions, Rows
from maat.scheduling.solving.mixed_solver import solve_mixed
from maat.scheduling.solving.report import SolveReport

# Shares of the work, and the value that stands for 0 in the logarithm (artifact's configuration).
BREAKPOINTS = np.array([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
LOG_OF_NOTHING = 1e-6
LOG = np.log(np.maximum(BREAKPOINTS, LOG_OF_NOTHING))


@dataclass(frozen=True)
class Window:
    """The data of the programmes, over J jobs.

    Shapes (J,): `demand`: GPUs; `done`: share of the work; `paced_rounds`: rounds of the whole work
    at the pace so far; `remaining_rounds`: as predicted; `weight`: of the job's utility;
    `least_rounds`: rounds needed for a fair finish; `must_run`: True for a job in every round.
    `free`: GPUs of every round.
    """

    demand: IntArray
    done: FloatArray
    paced_rounds: FloatArray
    remaining_rounds: FloatArray
    weight: FloatArray
    least_rounds: FloatArray
    must_run: BoolArray
    free: int
    rounds: int
    makespan_weight: float

    def __len__(self) -> int:
        return len(self.demand)

    def utilities(self) -> FloatArray:
        """Return weight_j U_j of every job for 0 to T rounds, shape (J, T + 1)."""
        planned = np.minimum(np.arange(self.rounds + 1)[None, :], self._most_rounds[:, None])
        reached = self.done[:, None] + planned / self.paced_rounds[:, None]
        worth: FloatArray = self.weight[:, None] * np.interp(reached, BREAKPOINTS, LOG)
        return worth

    def left_after(self, count: IntArray) -> FloatArray:
        """Return the rounds that each job needs after `count`, shape (J,)."""
        left: FloatArray = self.remaining_rounds - np.minimum(count, self._most_rounds)
        return left

    def objective(self, count: IntArray) -> float:
        """Return the objective of the first programme for `count` (J,) rounds."""
        worth = self.utilities()[np.arange(len(self)), count].sum()
        return float(
            worth - self.makespan_weight * max(float(self.left_after(count).max(initial=0.0)), 0.0)
        )

    def is_fair(self, count: IntArray) -> bool:
        """Return whether `count` (J,) gives each job the rounds that it must have."""
        enough = self.least_rounds <= np.minimum(count, self._most_rounds) + 1e-9
        return bool(enough.all() and (count[self.must_run] == self.rounds).all())

    @property
    def _most_rounds(self) -> FloatArray:
        """The rounds in which the work is done at the pace so far."""
        most: FloatArray = (1.0 - self.done) * self.paced_rounds
        return most

    @property
    def demands_divide(self) -> bool:
        """Whether each demand divides the next larger one, and the largest all GPUs.

        Only then can counts alone tell which jobs fit.
        """
        return all(
            large % small == 0
            for small, large in pairwise([*np.unique(self.demand).tolist(), self.free])
        )


def share_rounds(window: Window, options: MixedOptions) -> tuple[IntArray | None, SolveReport]:
    """Return the rounds of every job, shape (J, T) of 0 and 1, in any order.

        maximise  sum_j weight_j U_j(done_j + planned_j / paced_j)
                  - k max_j (remaining_j - planned_j)+
        with  least_j <= planned_j <= sum_r x_jr,  sum_j n_j x_jr <= G in every round.

    U is the logarithm, linear between its breakpoints: concave, so that its convex combination
    needs no binaries. If the demands divide each other, one integer per job replaces its T
    binaries; the answer is taken if the counts can be spread over the rounds. Equal demands always
    can (McNaughton 1959), unequal ones mostly: a job on all GPUs for one round of two leaves no two
    rounds for another. None if the solver finds no answer.
    """
    by_counts = SolveReport()
    if window.demands_divide:
        count, by_counts = share_counts(window, options)
        table = None if count is None else spread_rounds(window, count)
        if count is None or table is not None:
            return table, by_counts
    table, report = _solve(window, window.rounds, options)
    return table, report.after(by_counts)


def share_counts(window: Window, options: MixedOptions) -> tuple[IntArray | None, SolveReport]:
    """Return how many rounds each job gets, shape (J,), by total GPUs only.

    Limits only the GPUs of all rounds together. Its objective bounds that of `share_rounds`.
    """
    counts, report = _solve(window, 1, options)
    return None if counts is None else counts[:, 0], report


def _solve(
    window: Window, slots: int, options: MixedOptions
) -> tuple[IntArray | None, SolveReport]:
    """Solve the programme with rounds joined into equal slots, shape (J, slots)."""
    many, each = len(window), window.rounds // slots
    rows, log = Rows(), LOG
    taken = np.arange(many * slots).reshape(many, slots)
    planned = many * slots + np.arange(many)
    point = many * (slots + 1) + np.arange(many * len(log)).reshape(many, -1)
    latest = np.full(many, point[-1, -1] + 1)
    one, none = np.ones(many), np.full(many, np.inf)
    rows.add(one, one, (point, np.ones(len(log))))
    rows.add(window.done, window.done, (point, BREAKPOINTS), (planned, -1.0 / window.paced_rounds))
    rows.add(-none, np.zeros(many), (planned, one), (taken, -np.ones(slots)))
    rows.add(window.remaining_rounds, none, (planned, one), (latest, one))
    rows.add(
        np.full(slots, -np.inf),
        np.full(slots, float(window.free * each)),
        (taken.T, np.tile(window.demand, (slots, 1))),
    )
    cost = np.concatenate(
        (
            np.zeros(many * (slots + 1)),
            np.outer(window.weight, log).ravel(),
            [-window.makespan_weight],
        )
    )
    upper = np.concatenate(
        (np.full(many * slots, each), np.full(many, window.rounds), np.ones(point.size), [np.inf])
    )
    lower = np.concatenate(
        (np.repeat(window.must_run * each, slots), window.least_rounds, np.zeros(point.size + 1))
    )
    answer = solve_mixed(
        rows.programme(cost, np.minimum(lower, upper), upper, np.arange(len(cost)) < many * slots),
        options,
    )
    x = (
        None
        if answer.x is None
        else np.round(answer.x[: many * slots]).astype(np.int64).reshape(many, slots)
    )
    return x, answer.report


def fair_is_possible(window: Window) -> bool:
    """Return whether each job alone can have the rounds that it must have.

    Most infeasible windows fail this test.
    """
    return window.is_fair(np.full(len(window), window.rounds))


def spread_rounds(window: Window, count: IntArray) -> IntArray | None:
    """Return rounds (J, T) for counts (J,), each in the rounds with most room.

    Jobs with the largest demand come first, of these those with most rounds. None if a job finds
    too few rounds with room.
    """
    table = np.zeros((len(window), window.rounds), dtype=np.int64)
    room = np.full(window.rounds, window.free)
    for row in np.lexsort((-count, -window.demand)).tolist():
        roomiest = np.argsort(-room, kind="stable")[: count[row]]
        room[roomiest] -= window.demand[row]
        if (room < 0).any():
            return None
        table[row, roomiest] = 1
    return table


def order_rounds(
    window: Window, table: IntArray, priority: FloatArray, options: MixedOptions
) -> tuple[IntArray, SolveReport]:
    """Order rounds: minimise sum_j priority_j x mean round of j.

    Every job keeps its number of rounds. Shapes (J, T), (J,). Returns the table unchanged if the
    solver finds nothing.
    """
    count = table.sum(axis=1)
    free = window.free - (window.demand * (count == window.rounds)).sum()
    open_rows = np.flatnonzero((count > 0) & (count < window.rounds))
    if not len(open_rows):
        return table, SolveReport()
    many, rounds = len(open_rows), window.rounds
    column = np.arange(many * rounds).reshape(many, rounds)
    rows = Rows()
    rows.add(
        count[open_rows].astype(float), count[open_rows].astype(float), (column, np.ones(rounds))
    )
    rows.add(
        np.full(rounds, -np.inf),
        np.full(rounds, float(free)),
        (column.T, np.broadcast_to(window.demand[open_rows], (rounds, many))),
    )
    cost = -np.outer(priority[open_rows] / count[open_rows], np.arange(rounds)).ravel()
    zero = np.zeros(many * rounds)
    answer = solve_mixed(
        rows.programme(cost, zero, zero + 1.0, np.ones(many * rounds, dtype=bool)), options
    )
    if answer.x is None:
        return table, answer.report
    ordered = table.copy()
    ordered[open_rows] = np.round(answer.x).astype(np.int64).reshape(many, rounds)
    return ordered, answer.report
