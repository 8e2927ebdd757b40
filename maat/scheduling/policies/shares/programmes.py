"""Gavel's objectives as linear programmes over shares of time.

    maximise an objective of  sum_v rate_jv x_v
    with  sum of a job's shares <= 1,  GPUs and places of every limit kept,  x >= 0

`time_shares.py` turns the shares into rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from maat.scheduling.arrays import BoolArray, FloatArray, IntArray
from maat.scheduling.policies.shares.time_shares import Candidates
from maat.scheduling.rounds import RoundInput
from maat.scheduling.solving.linear_programme import LinearMethod, LinearProgramme
from maat.scheduling.solving.linear_solver import solve_linear, solve_stated
from maat.scheduling.solving.papers.stated_answer import StatedAnswer
from maat.scheduling.solving.report import SolveReport

if TYPE_CHECKING:
    from maat.scheduling.solving.papers.gavel import GavelRound

NEGLIGIBLE = 1e-9  # share of the largest need below which a solver's precision misses a constraint
LARGEST = 1e300  # stands for infinity where a figure must be finite
RHO_TOLERANCE = 1e-4
SHORTEST_SECONDS = 1e-6  # least time of a job alone, and least time left to end in
MOST_HALVINGS = 60


@dataclass(frozen=True)
class Shares:
    """The share of each candidate, shape (V,), and the solver's report."""

    x: FloatArray
    report: SolveReport


@dataclass(frozen=True)
class Lateness:
    """The data of finish-time fairness: rho_j = (elapsed_j + seconds still to come) / alone_j.

    `remaining`: effective samples left; `elapsed`, `alone`: seconds; `counts`: whether the job
    can end. Shapes (J,).
    """

    remaining: FloatArray
    elapsed: FloatArray
    alone: FloatArray
    counts: BoolArray

    @classmethod
    def of(cls, problem: ShareProblem, remaining: FloatArray, alone: FloatArray) -> Lateness:
        round_input = problem.round_input
        elapsed = np.array(
            [job.age_seconds(round_input.now) for job in round_input.jobs], dtype=np.float64
        )
        counts = (remaining > 0) & (problem.fastest() > 0) & np.isfinite(alone)
        return cls(remaining, elapsed, np.maximum(alone, SHORTEST_SECONDS), counts)

    def need_at(self, rho: float) -> FloatArray:
        """Return the effective samples/s that each job needs for rho, shape (J,)."""
        whole = np.where(self.counts, self.alone, 0.0)
        left = np.maximum(rho * whole - self.elapsed, SHORTEST_SECONDS)
        return np.where(self.counts, self.remaining / left, 0.0)


class ShareProgrammes(Protocol):
    """The objectives of Gavel, by Maat's own programmes or as the paper states them."""

    def most_throughput(self) -> Shares: ...
    def largest_minimum(self, need: FloatArray, /) -> Shares: ...
    def shortest_makespan(self, remaining: FloatArray, /) -> Shares: ...
    def fairest(self, lateness: Lateness, /) -> Shares: ...


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
        time = self.time_needed(need)
        scale = float(time.max(initial=0.0))
        if scale == 0.0:
            return self.most_throughput()
        counted = np.where(time > NEGLIGIBLE * scale, time / scale, 0.0)
        found = self._solve(np.zeros(len(self.candidates)), time=counted)
        return in_units_of(scale, found)

    def shortest_makespan(self, remaining: FloatArray) -> Shares:
        """Minimise max_j remaining_j / throughput_j. The report's objective is its inverse."""
        return self.largest_minimum(remaining)

    def fairest(self, lateness: Lateness) -> Shares:
        """Minimise max_j rho_j (Gavel section 4; Themis's measure).

        Found by bisection: at rho every job needs `lateness.need_at(rho)`, which falls with rho.
        The report's objective is -rho, its bound minus the largest rho that was too small.
        """
        if not lateness.counts.any():
            return self.most_throughput()
        past = np.where(lateness.counts, lateness.elapsed / lateness.alone, 0.0)
        need_at, above = lateness.need_at, float(past.max(initial=0.0))
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
        return replace(best, report=_of_rho(best.report, high, low))

    def stated(
        self,
        state: Callable[[GavelRound], StatedAnswer],
        worth: Callable[[FloatArray], float],
        *,
        otherwise: Callable[[], Shares],
    ) -> Shares:
        """Return the shares by a programme as Gavel's paper states it, through CVXPY.

        `worth`: the objective of shares, (V,); more is better. `otherwise`: gives the shares if
        those of CVXPY cannot be used.
        """
        c = self.candidates
        if not len(c):
            return Shares(np.zeros(0), SolveReport())
        programme, limit_rows = self._programme(np.zeros(len(c)), None)
        limits = list(limit_rows.values())
        names = [self.round_input.limits[r].name for r in limits]
        stated = self._as_in_the_paper(limits)
        found = solve_stated(programme, lambda: state(stated), worth=worth, row_names=names)
        if not found.report.fallback:
            return Shares(np.minimum(found.x, 1.0), found.report)
        own = otherwise()
        message = f"{found.report.message}; Maat's own solver answered"
        report = replace(own.report.after(found.report), fallback=True, message=message)
        return replace(own, report=report)

    def _as_in_the_paper(self, limits: list[int]) -> GavelRound:
        from maat.scheduling.solving.papers.gavel import GavelRound

        c = self.candidates
        entry, job, relative = self._relative_rates()
        return GavelRound(
            entry=entry,
            job=job,
            throughput=relative,
            usage=c.usage[:, limits],
            num_workers=c.free[limits],
            jobs=len(self.round_input.jobs),
        )

    def speed(self, x: FloatArray) -> FloatArray:
        """Return sum_v rate_jv x_v over each job's best rate, shape (J,). `x`: shape (V,)."""
        entry, job, relative = self._relative_rates()
        speed: FloatArray = np.bincount(
            job, weights=relative * x[entry], minlength=len(self.round_input.jobs)
        ).astype(np.float64)
        return speed

    def _relative_rates(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Return candidate, job, and rate over the job's best, of every member; shapes (K,)."""
        c, best = self.candidates, self.fastest()
        entry, side = np.nonzero(c.members >= 0)
        job, rate = c.members[entry, side], c.rate[entry, side]
        return entry, job, np.divide(rate, best[job], out=np.zeros(len(rate)), where=best[job] > 0)

    def time_needed(self, need: FloatArray) -> FloatArray:
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


def in_units_of(scale: float, shares: Shares) -> Shares:
    """Return shares whose objective and bound are divided by `scale`."""
    with np.errstate(over="ignore"):
        objective, bound = (
            min(value / scale, LARGEST) for value in (shares.report.objective, shares.report.bound)
        )
    return replace(shares, report=replace(shares.report, objective=objective, bound=bound))


def _of_rho(report: SolveReport, rho: float, too_small: float) -> SolveReport:
    """Return the report of a bisection that ended between two values of rho."""
    gap = (rho - too_small) / max(too_small, 1e-12)
    message = report.message or f"least worst rho {rho:.4g}"
    return replace(report, objective=-rho, bound=-too_small, gap=gap, message=message)
