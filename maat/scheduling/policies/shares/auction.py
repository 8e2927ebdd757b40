"""The partial-allocation auction (Themis section 3.3, after Cole et al., 2013).

It finds the proportionally fair choice, and what each winner must pay. The policy decides who bids
and how a winner pays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from maat.scheduling.arrays import BoolArray, FloatArray, IntArray
from maat.scheduling.policies.shares.time_shares import Candidates
from maat.scheduling.rounds import RoundInput
from maat.scheduling.solving.assignment.problem import Assignment, AssignmentProblem, SolveOptions
from maat.scheduling.solving.assignment.solver import solve, solve_stated
from maat.scheduling.solving.engines import Solver
from maat.scheduling.solving.papers.stated_answer import StatedAnswer
from maat.scheduling.solving.report import SolveReport

EXACT = 1e-9


@dataclass(frozen=True)
class Outcome:
    """The winning bids, what each winner keeps, and the report of all programmes.

    `kept`: the part c in (0, 1] of each bid in `won`.
    """

    won: tuple[int, ...]
    kept: tuple[float, ...]
    report: SolveReport


def auction(
    round_input: RoundInput,
    candidates: Candidates,
    log_gain: FloatArray,
    *,
    bids: Sequence[int],
    free: IntArray,
    options: SolveOptions,
    solver: Solver = Solver.PRICES,
) -> Outcome:
    """Maximise prod_j V_j over at most one bundle per job.

    That is the sum of log gains of the chosen bids, within GPUs and limits. Winner i keeps c_i =
    prod_{j != i} V_j in this outcome over the same product in the best one without i: what its
    presence costs the others.

    Args:
        log_gain: log(V_j(bundle) / V_j(nothing)) of every candidate, shape (V,).
        bids: The candidates that are offered.
        free: What each limit leaves, shape (R,).
        solver: What solves the programmes.
    """
    offered = _OfferedBids(
        round_input,
        candidates,
        log_gain,
        np.array(sorted(bids), dtype=np.int64),
        free,
        options,
        solver,
    )
    best = offered.best(np.ones(len(offered.bids), dtype=bool))
    won = offered.bids[best.chosen]
    contested = float(log_gain[won].sum()) < offered.wishes() - EXACT
    parts = [offered.part_of(int(v), won) if contested else _Part() for v in won.tolist()]
    report = best.report.after(*(part.report for part in parts))
    return Outcome(tuple(won.tolist()), tuple(part.kept for part in parts), report)


@dataclass(frozen=True)
class _Part:
    """What a winner keeps, in (0, 1], and the report of the programme without it."""

    kept: float = 1.0
    report: SolveReport = SolveReport()


@dataclass(frozen=True)
class _OfferedBids:
    """The bids of one auction: indices of candidates, ascending."""

    round_input: RoundInput
    candidates: Candidates
    log_gain: FloatArray
    bids: IntArray
    free: IntArray
    options: SolveOptions
    solver: Solver

    def wishes(self) -> float:
        """Return the sum of log gains if each job had its best bid."""
        best = np.zeros(len(self.round_input.jobs))
        np.maximum.at(best, self.candidates.members[self.bids, 0], self.log_gain[self.bids])
        return float(best.sum())

    def part_of(self, winner: int, won: IntArray) -> _Part:
        """Return c of a winner."""
        row = self.candidates.members[winner, 0]
        others = self.candidates.members[self.bids, 0] != row
        with_it = float(self.log_gain[won].sum() - self.log_gain[winner])
        without = self.best(others)
        without_it = float(self.log_gain[self.bids[others][without.chosen]].sum())
        return _Part(float(np.exp(min(with_it - without_it, 0.0))), without.report)

    def best(self, mask: BoolArray) -> Assignment:
        """Return the proportionally fair choice among the bids under `mask`."""
        at = self.bids[mask]
        order = at[np.argsort(self.candidates.members[at, 0], kind="stable")]
        usage = self.candidates.usage[order]
        problem = AssignmentProblem(
            value=self.log_gain[order],
            places=self.candidates.gpu_count[order],
            job=self.candidates.members[order, 0],
            membership=usage > 0,
            capacity=self.free,
            present=self._present(order),
            limit_names=tuple(limit.name for limit in self.round_input.limits),
        )
        if self.solver is Solver.CVXPY:
            return _solve_by_cvxpy(problem, self.options)
        return solve(problem, self.options)

    def _present(self, at: IntArray) -> BoolArray:
        types = self.round_input.cluster.type_names
        held = [
            self.round_input.jobs[row].allocation for row in self.candidates.members[at, 0].tolist()
        ]
        kinds, counts = (
            self.candidates.gpu_type[at].tolist(),
            self.candidates.gpu_count[at].tolist(),
        )
        return np.array(
            [
                h is not None and (h.gpu_type, h.gpu_count) == (types[t], n)
                for h, t, n in zip(held, kinds, counts, strict=True)
            ],
            dtype=bool,
        )


def _solve_by_cvxpy(problem: AssignmentProblem, options: SolveOptions) -> Assignment:
    """Return the best choice by the programme as Themis's paper states it."""
    from maat.scheduling.solving.papers import themis
    from maat.scheduling.solving.papers.cvxpy_solver import MixedLimits

    def state(bids: IntArray) -> StatedAnswer:
        stated = themis.ThemisAuction(
            log_gain=problem.value[bids],
            job=problem.job[bids],
            usage=problem.usage[bids],
            offered=problem.capacity,
        )
        return themis.solve(stated, MixedLimits(options.tolerance, options.fallback_seconds))

    return solve_stated(problem, options, state)
