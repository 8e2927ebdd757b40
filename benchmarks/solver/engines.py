"""Maat's own solvers and the papers' programmes in CVXPY, on the same recorded rounds."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.solver.recorded import decided_again, recorded_rounds
from benchmarks.table import Cell, Figures
from maat.scheduling.policies import POLICIES
from maat.scheduling.protocols import Policy
from maat.scheduling.rounds import RoundInput
from maat.scheduling.solving.report import SolveReport

COLUMNS = {
    "programme": "programme",
    "rounds": "rounds",
    "jobs": "jobs",
    "own_seconds": "prices",
    "own_worst_seconds": "worst",
    "cvxpy_seconds": "cvxpy",
    "cvxpy_worst_seconds": "worst",
    "times": "x prices",
    "difference": "largest difference",
    "gap": "largest certified gap",
    "outside": "outside the gap",
}
NOTES = [
    "CPU seconds of a whole decision of the policy, medians over the recorded rounds: statement, "
    "solving, checks, grants. 'worst' is the slowest round.",
    "Differences of objectives and gaps are relative. outside: rounds in which the objectives "
    "differ by more than the larger certified gap (and 1e-8 for rounding), or one fell back.",
]
PROGRAMMES: tuple[tuple[str, Mapping[str, object]], ...] = (
    ("sia", {}),
    ("themis", {}),
    ("shockwave", {}),
    *(
        ("gavel", {"objective": objective})
        for objective in ("max-sum-throughput", "max-min", "makespan", "finish-time-fairness")
    ),
)
ROUNDING = 1e-8


@dataclass(frozen=True)
class _Timed:
    """The reports of one engine's decisions, and the CPU seconds of each."""

    reports: Sequence[SolveReport]
    seconds: Sequence[float]


def measure(*, rounds: int) -> Figures:
    rows = [_row(policy, parameters, rounds) for policy, parameters in PROGRAMMES]
    return Figures(
        "engines", "Programmes by Maat's own solvers and in CVXPY", COLUMNS, rows, list(NOTES)
    )


def _row(policy: str, parameters: Mapping[str, object], rounds: int) -> dict[str, Cell]:
    recorded = recorded_rounds(policy, rounds, parameters)
    own, stated = (
        _timed(POLICIES.build(policy, {**parameters, "solver": solver}), recorded)
        for solver in ("prices", "cvxpy")
    )
    pairs = list(zip(own.reports, stated.reports, strict=True))
    medians = statistics.median(own.seconds), statistics.median(stated.seconds)
    return {
        "programme": ", ".join([policy, *map(str, parameters.values())]),
        "rounds": len(recorded),
        "jobs": int(statistics.median(len(round_input.jobs) for round_input in recorded)),
        "own_seconds": medians[0],
        "own_worst_seconds": max(own.seconds),
        "cvxpy_seconds": medians[1],
        "cvxpy_worst_seconds": max(stated.seconds),
        "times": medians[1] / medians[0],
        "difference": max(_difference(a, b) / _size(a) for a, b in pairs),
        "gap": max(_certified(a, b) / _size(a) for a, b in pairs),
        "outside": sum(_is_outside(a, b) for a, b in pairs),
    }


def _timed(policy: Policy, recorded: Sequence[RoundInput]) -> _Timed:
    decided_again(recorded[0], policy)  # imports what it needs
    reports, seconds = [], []
    for round_input in recorded:
        began = time.process_time()
        reports.append(decided_again(round_input, policy).report)
        seconds.append(time.process_time() - began)
    return _Timed(reports, seconds)


def _difference(own: SolveReport, stated: SolveReport) -> float:
    return abs(own.objective - stated.objective)


def _certified(own: SolveReport, stated: SolveReport) -> float:
    return max(own.bound - own.objective, stated.bound - stated.objective)


def _size(own: SolveReport) -> float:
    return max(abs(own.objective), 1e-12)


def _is_outside(own: SolveReport, stated: SolveReport) -> bool:
    allowed = _certified(own, stated) + ROUNDING * max(_size(own), 1.0)
    return own.fallback or stated.fallback or _difference(own, stated) > allowed
