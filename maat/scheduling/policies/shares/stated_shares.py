"""Gavel's shares by its objectives as the paper states them, through CVXPY.

Throughputs are relative to each job's fastest, so that coefficients stay near one. The report's
objective is the same figure as that of Maat's own programmes (programmes.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.policies.shares.programmes import (
    NEGLIGIBLE,
    Lateness,
    ShareProblem,
    Shares,
    in_units_of,
)
from maat.scheduling.solving.papers.stated_answer import StatedAnswer

if TYPE_CHECKING:
    from maat.scheduling.solving.papers.gavel import GavelRound

Otherwise = Callable[[], Shares]


@dataclass(frozen=True)
class StatedShares:
    """The objectives over one problem; `otherwise`: gives the shares if CVXPY gives none."""

    problem: ShareProblem
    otherwise: Otherwise

    def most_throughput(self) -> Shares:
        """Maximise sum_j w_j throughput_j."""
        from maat.scheduling.solving.papers import gavel

        problem = self.problem
        weight = problem.weight * problem.fastest()
        return problem.stated(
            lambda data: gavel.total_throughput(data, weight),
            lambda x: float(weight @ problem.speed(x)),
            otherwise=self.otherwise,
        )

    def largest_minimum(self, need: FloatArray) -> Shares:
        """Maximise min_j throughput_j / need_j, the objective of max-min fairness."""
        from maat.scheduling.solving.papers import gavel

        return self._slowest(need, gavel.largest_minimum)

    def shortest_makespan(self, remaining: FloatArray) -> Shares:
        """Minimise max_j remaining_j / throughput_j; the report's objective is 1 / makespan."""
        from maat.scheduling.solving.papers import gavel

        return self._slowest(
            remaining, lambda data, rows, times: _inverse(gavel.makespan(data, rows, times))
        )

    def _slowest(
        self, need: FloatArray, state: Callable[[GavelRound, IntArray, FloatArray], StatedAnswer]
    ) -> Shares:
        """Return shares by a programme over the job with least throughput_j / need_j.

        It counts jobs whose need is not negligible, and times relative to the longest.
        """
        time = self.problem.time_needed(need)
        scale = float(time.max(initial=0.0))
        rows = np.flatnonzero(time > NEGLIGIBLE * scale)
        if not len(rows):
            return self.most_throughput()
        times = time[rows] / scale
        shares = self.problem.stated(
            lambda data: state(data, rows, times),
            lambda x: float((self.problem.speed(x)[rows] / times).min()),
            otherwise=self.otherwise,
        )
        return shares if shares.report.fallback else in_units_of(scale, shares)

    def fairest(self, lateness: Lateness) -> Shares:
        """Minimise max_j rho_j over the jobs that can end; the report's objective is -rho."""
        from maat.scheduling.solving.papers import gavel

        counts = np.flatnonzero(lateness.counts)
        if not len(counts):
            return self.most_throughput()
        fastest_seconds = self.problem.time_needed(lateness.remaining)[counts]
        past, whole = lateness.elapsed[counts], lateness.alone[counts]

        def worst(x: FloatArray) -> float:
            speed = np.maximum(self.problem.speed(x)[counts], 1e-300)
            return -float(((past + fastest_seconds / speed) / whole).max())

        shares = self.problem.stated(
            lambda data: _negative(
                gavel.finish_time_fairness(
                    data, counts, elapsed=past, num_steps=fastest_seconds, isolated=whole
                )
            ),
            worst,
            otherwise=self.otherwise,
        )
        rho = f"least worst rho {-shares.report.objective:.4g}"
        return replace(shares, report=replace(shares.report, message=shares.report.message or rho))


def _inverse(answer: StatedAnswer) -> StatedAnswer:
    """Return an answer that minimises m as one that maximises 1 / m."""
    least = max(answer.objective, 1e-300)
    no_answer_below = max(least - answer.lost, 1e-300)
    return replace(
        answer,
        objective=1.0 / least,
        lost=1.0 / no_answer_below - 1.0 / least,
        prices=None if answer.prices is None else answer.prices / least**2,
    )


def _negative(answer: StatedAnswer) -> StatedAnswer:
    """Return an answer that minimises rho as one that maximises -rho."""
    return replace(answer, objective=-answer.objective)
