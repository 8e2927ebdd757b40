"""Solving Sia's programme: Maat, HiGHS, cvxpy with HiGHS, and cvxpy with GLPK_MI.

GLPK_MI is the paper's solver. All solve the same instances.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.solver.children import Answers, ask_child
from benchmarks.solver.instances import Instance, rounds
from benchmarks.table import Cell, Figures, growth
from maat.scheduling.solving.assignment.problem import AssignmentProblem, SolveOptions
from maat.scheduling.solving.assignment.solver import solve, solve_highs
from maat.scheduling.solving.report import SolveReport

COLUMNS = {
    "gpus": "GPUs",
    "capacity": "capacity",
    "jobs": "jobs",
    "pairs": "pairs",
    "maat_seconds": "Maat",
    "maat_worst_seconds": "worst",
    "growth": "growth",
    "highs_seconds": "HiGHS gap 0",
    "cvxpy_highs_seconds": "cvxpy+HiGHS",
    "cvxpy_glpk_seconds": "cvxpy+GLPK_MI",
    "cvxpy_build_seconds": "(cvxpy build)",
    "under_cvxpy_highs": "x under HiGHS",
    "under_cvxpy_glpk": "x under GLPK",
    "objective": "objective",
    "highs_objective": "HiGHS's",
    "certified_gap": "certified gap",
    "true_gap": "true gap",
}
NOTES = [
    "CPU seconds of the process, medians over the stored rounds; 'worst' is the slowest of them. "
    "cvxpy: solving alone, building beside it.",
    "Gaps are the worst of the rounds, relative: certified against the bound that the prices "
    "prove, true against HiGHS at gap 0.",
    "odd: 1-7 GPUs of each type are missing. growth: exponent of Maat's cost in pairs from the "
    "size before. x under: solve against solve.",
]
PROOF = SolveOptions(tolerance=0.0, fallback_seconds=120.0)


@dataclass(frozen=True, slots=True)
class Settings:
    """What to measure.

    A child that needs more than `kill_after` wall seconds is killed.
    """

    sizes: Sequence[int] = (64, 256, 1024, 2048)
    jobs_per_gpu: float = 0.5
    stored: int = 5
    kill_after: float = 20.0
    others: bool = True


@dataclass
class Arm:
    """CPU seconds of the rounds that one solver finished.

    `unanswered`: those of the round in which it was killed.
    """

    seconds: list[float] = field(default_factory=list)
    build_seconds: list[float] = field(default_factory=list)
    killed_after: float | None = None
    unanswered: float | None = None

    @property
    def median(self) -> float | None:
        return float(np.median(self.seconds)) if self.seconds else None

    def cell(self) -> Cell:
        if self.killed_after is None:
            return self.median
        solved = f"; {len(self.seconds)} before: {self.median:.2g}" if self.seconds else ""
        return f"killed after {self.killed_after:.0f} s ({self.unanswered:.3g} CPU s){solved}"


def measure(settings: Settings) -> Figures:
    rows = [row for odd in (False, True) for row in _rows(settings, odd=odd)]
    columns = {key: heading for key, heading in COLUMNS.items() if any(key in row for row in rows)}
    return Figures(
        "solve",
        f"Solving the assignment programme, {settings.jobs_per_gpu} jobs per GPU",
        columns,
        rows,
        list(NOTES),
    )


def _rows(settings: Settings, *, odd: bool) -> list[dict[str, Cell]]:
    found = []
    for gpus in settings.sizes:
        stored = rounds(
            gpus,
            jobs_per_gpu=settings.jobs_per_gpu,
            odd=odd,
            stored=settings.stored,
            choose=lambda problem: solve(problem).chosen,
        )
        found.append(_row(list(stored), settings))
    exponents = growth(
        [float(row["pairs"] or 0) for row in found],
        [float(row["maat_seconds"] or 0) for row in found],
    )
    return [{**row, "growth": exponent} for row, exponent in zip(found, exponents, strict=True)]


def _row(instances: list[Instance], settings: Settings) -> dict[str, Cell]:
    problems = [instance.problem for instance in instances]
    reports = [solve(problem).report for problem in problems]
    seconds = [report.seconds for report in reports]
    row: dict[str, Cell] = {
        "gpus": instances[0].gpus,
        "capacity": "odd" if instances[0].odd else "intact",
        "jobs": instances[0].jobs,
        "pairs": int(np.median([len(problem.value) for problem in problems])),
        "maat_seconds": float(np.median(seconds)),
        "maat_worst_seconds": max(seconds),
        "objective": reports[-1].objective,
        "certified_gap": max(report.gap for report in reports),
    }
    return {**row, **_compared(problems, reports, settings)} if settings.others else row


def _compared(
    problems: list[AssignmentProblem], reports: list[SolveReport], settings: Settings
) -> dict[str, Cell]:
    proofs = [solve_highs(problem, PROOF).report for problem in problems]
    highs, glpk = (
        _in_cvxpy(solver, problems, settings.kill_after) for solver in ("HIGHS", "GLPK_MI")
    )
    ours = float(np.median([report.seconds for report in reports]))
    return {
        "highs_seconds": float(np.median([proof.seconds for proof in proofs])),
        "cvxpy_highs_seconds": highs.cell(),
        "cvxpy_glpk_seconds": glpk.cell(),
        "cvxpy_build_seconds": float(np.median(highs.build_seconds))
        if highs.build_seconds
        else None,
        "under_cvxpy_highs": _times_under(highs, ours),
        "under_cvxpy_glpk": _times_under(glpk, ours),
        "highs_objective": proofs[-1].objective,
        "true_gap": max(
            (proof.objective - report.objective) / proof.objective
            for proof, report in zip(proofs, reports, strict=True)
        ),
    }


def _times_under(arm: Arm, ours: float) -> Cell:
    """Return the other's median over ours.

    If the other was killed, at least its time without an answer over ours.
    """
    if arm.unanswered is not None:
        return f"> {arm.unanswered / ours:.0f}"
    return None if arm.median is None else arm.median / ours


def _in_cvxpy(solver: str, problems: list[AssignmentProblem], kill_after: float) -> Arm:
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"{number}.npz") for number in range(len(problems))]
        for path, problem in zip(paths, problems, strict=True):
            useful = problem.value > 0  # what Maat drops in advance is dropped for all
            np.savez(
                path,
                value=problem.value[useful],
                places=problem.places[useful],
                job=problem.job[useful],
                membership=problem.membership[useful],
                capacity=problem.capacity,
            )
        answers = ask_child(
            "benchmarks.solver.cvxpy_child",
            [solver, *map(str, paths)],
            expected=len(paths),
            seconds=kill_after,
        )
    return _arm(answers)


def _arm(answers: Answers) -> Arm:
    return Arm(
        seconds=[float(line["solve"]) for line in answers.lines],
        build_seconds=[float(line["build"]) for line in answers.lines],
        killed_after=answers.killed_after,
        unanswered=answers.spent_without_answer,
    )
