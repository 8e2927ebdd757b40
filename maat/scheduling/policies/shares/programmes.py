"""Gavel's objectives as linear programmes over shares of time.

    maximise an objective of  sum_v rate_jv x_v
    with  sum of a job's shares <= 1,  GPUs and places of every limit kept,  x >= 0

`time_shares.py` turns the shares into rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.policies.shares.time_shares import Candidates
from maat.scheduling.rounds import RoundInput
from maat.scheduling.solving.linear_programme import LinearMethod, LinearProgramme
from maat.scheduling.solving.linear_solver import solve_linear
from maat.scheduling.solving.report import SolveReport

NEGLIGIBLE = 1e-9  # share of the largest need below which a solver's precision misses a constraint
LARGEST = 1e300  # stands for infinity where a figure must be finite
RHO_TOLERANCE = 1e-4
MOST_HALVINGS = 60


@dataclass(frozen=True)
class Shares:
    """The share of each candidate, shape (V,), and the solver's report."""

    x: FloatArray
    report: SolveReport


@dataclass(frozen=True)
class ShareProblem:
    """The data of every objective: the round, its candidates, the solver's method."""

    round_input: RoundInput
    candidates: Candidates
    method: LinearMethod

    @property
    def weight(self) -> FloatArray:
        """The weight of each job, shape (J,)."""
        return np.array([job.spec.weight for job in self.round_input.jobs], dtype=np.float64)

    def most_throughput(self) -> Shares:
        """Maximise sum_v (sum of weight x rate of the members of v) x_v."""
        c = self.candidates
        weighed = c.rate * self.weight[c.members] if len(c) else c.rate
        return self._solve(weighed.sum(axis=1))

    def largest_minimum(self, need: FloatArray) -> Shares:
        """Maximise s with sum_v rate_jv x_v >= s need_j for every job j with a need.

        `need`: shape (J,), in the rate's unit. The report's objective is s.
        """
        time = self._time(need)
        scale = float(time.max(initial=0.0))
        if scale == 0.0:
            return self.most_throughput()
        counted = np.where(time > NEGLIGIBLE * scale, time / scale, 0.0)
        found = self._solve(np.zeros(len(self.candidates)), time=counted)
        with np.errstate(over="ignore"):
            objective, bound = (
                min(value / scale, LARGEST)
                for value in (found.report.objective, found.report.bound)
            )
        return replace(found, report=replace(found.report, objective=objective, bound=bound))

    def least_ratio(
        self, need_at: Callable[[float], FloatArray], *, above: float
    ) -> tuple[Shares, float]:
        """Return shares for the least rho > `above` that all jobs can have, and rho.

        Found by bisection (Gavel section 4): at rho every job needs need_at(rho), shape (J,), which
        falls with rho.
        """
        low, high = above, max(2.0 * above, 1.0)
        best = self.largest_minimum(need_at(high))
        for _ in range(MOST_HALVINGS):
            if best.report.objective >= 1:
                break
            low, high = high, 2.0 * high
            best = self.largest_minimum(need_at(high))
        for _ in range(MOST_HALVINGS):
            if high - low <= RHO_TOLERANCE * high:
                break
            middle = (low + high) / 2
            found = self.largest_minimum(need_at(middle))
            low, high, best = (
                (low, middle, found) if found.report.objective >= 1 else (middle, high, best)
            )
        return best, high

    def _time(self, need: FloatArray) -> FloatArray:
        """Return the part of the time that each job needs at its best rate, shape (J,).

        Zero if the job has no rate.
        """
        best = self.fastest()
        time: FloatArray = np.divide(need, best, out=np.zeros(len(need)), where=best > 0)
        return time

    def fastest(self) -> FloatArray:
        """Return the best rate of each job in any candidate, shape (J,); zero if none."""
        best = np.zeros(len(self.round_input.jobs))
        for side in (0, 1):
            at = self.candidates.members[:, side]
            np.maximum.at(best, at[at >= 0], self.candidates.rate[at >= 0, side])
        return best

    def _solve(self, gain: FloatArray, time: FloatArray | None = None) -> Shares:
        """Solve one programme; with `time` (J,), a last variable s is maximised.

        All times are multiplied by s.
        """
        count = len(self.candidates)
        if not count:
            return Shares(np.zeros(0), SolveReport())
        programme, limit_rows = self._programme(gain, time)
        present = np.zeros(len(programme.gain))
        present[:count] = self._present()
        if (programme.used(present) > programme.most).any():
            present = np.zeros(len(programme.gain))
        names = {row: self.round_input.limits[r].name for row, r in limit_rows.items()}
        found = solve_linear(programme, present=present, method=self.method, row_names=names)
        return Shares(np.minimum(found.x[:count], 1.0), found.report)

    def _programme(
        self, gain: FloatArray, time: FloatArray | None
    ) -> tuple[LinearProgramme, dict[int, int]]:
        """Return the programme, and which limit each of its limit rows is."""
        c = self.candidates
        jobs, job_entries = self._job_rows()
        limit, candidate = np.nonzero(c.usage.T)
        used, limit_row = np.unique(limit, return_inverse=True)
        blocks = [
            job_entries,
            (jobs + limit_row, candidate, c.usage[candidate, limit].astype(np.float64)),
        ]
        most = [np.ones(jobs), c.free[used].astype(np.float64)]
        if time is not None:
            blocks.append(self._need_rows(time, first=jobs + len(used)))
            most.append(np.zeros(int(np.count_nonzero(time))))
            gain = np.append(gain, 1.0)
        row, column, entry = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
        programme = LinearProgramme(gain, row, column, entry, np.concatenate(most))
        return programme, {jobs + i: int(r) for i, r in enumerate(used)}

    def _job_rows(self) -> tuple[int, tuple[IntArray, IntArray, FloatArray]]:
        """Return the rows by which a job's shares are at most 1.

        The number of rows; then row, column, entry. A job without candidates has no row.
        """
        column, side = np.nonzero(self.candidates.members >= 0)
        there, row = np.unique(self.candidates.members[column, side], return_inverse=True)
        return len(there), (row, column, np.ones(len(column)))

    def _need_rows(self, time: FloatArray, *, first: int) -> tuple[IntArray, IntArray, FloatArray]:
        """Return the rows s time_j - sum_v rate_jv / best_j x_v <= 0.

        Row, column, entry.
        """
        c, best, needy = self.candidates, self.fastest(), np.flatnonzero(time)
        row_of = np.full(len(time), -1)
        row_of[needy] = first + np.arange(len(needy))
        column, side = np.nonzero((c.members >= 0) & (row_of[c.members] >= 0) & (c.rate > 0))
        member = c.members[column, side]
        entry = -c.rate[column, side] / best[member]
        s = np.full(len(needy), len(c))
        return (
            np.concatenate((row_of[member], row_of[needy])),
            np.concatenate((column, s)),
            np.concatenate((entry, time[needy])),
        )

    def _present(self) -> FloatArray:
        """Return 1 for what a job runs on now, alone; shape (V,)."""
        types, jobs = self.round_input.cluster.type_names, self.round_input.jobs
        x = np.zeros(len(self.candidates))
        for v, (row, partner) in enumerate(self.candidates.members.tolist()):
            held = jobs[row].allocation
            if held is not None and partner < 0 and self.candidates.runs[v]:
                same = (held.gpu_type, held.gpu_count) == (
                    types[self.candidates.gpu_type[v]],
                    self.candidates.gpu_count[v],
                )
                x[v] = float(same)
        return x
