"""The figures of a run that sweeps and comparisons report: names and titles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from maat.laboratory.fairness import Fairness, fairness_by_rule
from maat.simulation.notes import PlacerMoves, notes_on_clock, notes_on_moves, notes_on_never
from maat.simulation.record import (
    PLACEMENT_QUANTILES,
    POLICY_QUANTILES,
    SimulationResult,
)
from maat.vocabulary import FairnessRule

Figures = Mapping[str, float | int | bool]
Value = TypeVar("Value")
OUT_OF_TIME = "rounds_out_of_time"
BY_PLACER = "restarts_by_placer"
CANNOT_RUN = "cannot_run"
POOLED_P99 = "pooled_p99_jct_hours"  # of a contestant's runs together, not of one run
WORST_RHO, UNFAIR_FRACTION = "worst_rho", "unfair_fraction"
DEFAULT_RULE = FairnessRule.MEAN_OF_RATIOS


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a run.

    `unit`: None if it has none, or if the title names it. `form`: how tables show it.
    `of_finished`: it exists only if a job finished. `timed`: of the machine: two runs of one
    scenario differ in it.
    """

    name: str
    title: str
    unit: str | None = None
    form: str = "{:.3f}"
    of_finished: bool = False
    timed: bool = False


def name_by_rule(figure: str, rule: FairnessRule) -> str:
    """Name a figure of finish-time fairness: plain by the default rule, else with the rule."""
    return figure if rule is DEFAULT_RULE else f"{figure}_{rule.value.replace('-', '_')}"


def _of_rule(rule: FairnessRule) -> tuple[Figure, Figure]:
    worst, unfair = (name_by_rule(figure, rule) for figure in (WORST_RHO, UNFAIR_FRACTION))
    return Figure(worst, f"Worst rho, {rule}", form="{:.2f}", of_finished=True), Figure(
        unfair, f"Unfair share, {rule}", form="{:.1%}", of_finished=True
    )


def _of_sizes(name: str, title: str) -> tuple[Figure, Figure, Figure]:
    """Hours over all jobs, over large ones and over small ones (SJF-BSBF section VI-C)."""
    return (
        Figure(name, title, "h", of_finished=True),
        Figure(f"{name}_large", f"{title}, large jobs", "h", of_finished=True),
        Figure(f"{name}_small", f"{title}, small jobs", "h", of_finished=True),
    )


def _timed(part: str, title: str, quantiles: Mapping[str, float]) -> Iterator[Figure]:
    """CPU seconds of a part of a round (Sia figure 9, PAL figure 18)."""
    for name in quantiles:
        yield Figure(f"{part}_seconds_{name}", f"{title}, {name}", "s", form="{:.4f}", timed=True)


FIGURES: Mapping[str, Figure] = {
    figure.name: figure
    for figure in (
        Figure("jobs", "Jobs", form="{:.4g}"),
        Figure("unfinished", "Unfinished", form="{:.4g}"),
        Figure(CANNOT_RUN, "Cannot run", form="{:.4g}"),
        Figure("complete", "Complete", form="{:.0%}"),
        Figure("rounds", "Rounds", form="{:.0f}"),
        Figure(OUT_OF_TIME, "Rounds out of time", form="{:.4g}"),
        *_of_sizes("avg_jct_hours", "JCT"),
        Figure("median_jct_hours", "Median JCT", "h", of_finished=True),
        Figure("p99_jct_hours", "p99 JCT", "h", form="{:.2f}", of_finished=True),
        Figure(POOLED_P99, "p99 JCT of all runs", "h", form="{:.2f}", of_finished=True),
        Figure("makespan_hours", "Makespan", "h", form="{:.2f}", of_finished=True),
        Figure("gpu_hours_per_job", "GPU-h per job", form="{:.2f}"),
        Figure("restarts_per_job", "Restarts per job", form="{:.2f}"),
        Figure(BY_PLACER, "Restarts by the placer", form="{:.4g}"),
        Figure("restart_time_share", "Job time in restarts", form="{:.1%}"),
        Figure("restart_gpu_share", "GPU time in restarts", form="{:.1%}"),
        Figure("avg_queueing_hours", "Queueing delay", "h"),
        *_of_sizes("avg_waiting_hours", "Waiting in all"),
        Figure("contention_mean", "Mean contention", "jobs", form="{:.1f}"),
        Figure("contention_max", "Most contention", "jobs", form="{:.4g}"),
        Figure("utilisation", "GPUs held over the makespan", form="{:.1%}"),
        Figure("utilisation_busy", "GPUs held while jobs are there", form="{:.1%}"),
        *(figure for rule in FairnessRule for figure in _of_rule(rule)),
        *_timed("policy", "Policy time", POLICY_QUANTILES),
        *_timed("placement", "Placement time", PLACEMENT_QUANTILES),
    )
}


def figures_of(
    result: SimulationResult, *, fairness: Mapping[FairnessRule, Fairness] | None = None
) -> Figures:
    """Return the figures of a schedule, with finish-time fairness by every rule.

    `fairness`: by rule, where it is known already: the jobs alone take most of the time. Empty:
    none of its figures are wanted.
    """
    of_run = {
        "complete": result.complete,
        "rounds": result.rounds,
        OUT_OF_TIME: result.rounds_out_of_time,
        BY_PLACER: result.restarts_by_placer,
        CANNOT_RUN: len(result.cannot_run),
    }
    known = {
        **of_run,
        **result.figures(),
        **of_fairness(fairness_by_rule(result) if fairness is None else fairness),
    }
    return chosen(known, finished=result.metrics.unfinished < result.metrics.jobs)


def chosen(known: Mapping[str, float | int | bool | None], *, finished: bool) -> Figures:
    """Return the known figures.

    `finished`: whether any job finished. A time without any measurement is absent, not zero.
    """
    found = {
        name: known.get(name)
        for name, figure in FIGURES.items()
        if finished or not figure.of_finished
    }
    return {name: value for name, value in found.items() if value is not None}


def untimed(figures: Figures) -> Figures:
    """Return the figures that are the same in every run of a scenario."""
    timed = {name for name, figure in FIGURES.items() if figure.timed}
    return {name: value for name, value in figures.items() if name not in timed}


@dataclass(frozen=True, slots=True)
class RunFigures:
    """The figures of a run, with its policy and placer."""

    policy: str
    placer: str
    figures: Figures


def notes_on_runs(runs: Sequence[RunFigures]) -> tuple[str, ...]:
    """Return notes that only the runs show.

    A time limit ended a solver's search, or a placer restarted jobs by itself.
    """
    clock = notes_on_clock([int(run.figures.get(OUT_OF_TIME, 0)) for run in runs])
    return (*clock, *notes_on_moves(_moves(run) for run in runs))


def never_run(runs: Sequence[RunFigures]) -> tuple[str, ...]:
    """Return one sentence for each policy and placer under which jobs can never run."""
    together: dict[tuple[str, str], tuple[int, int]] = {}
    for run in runs:
        count, jobs = together.get((run.policy, run.placer), (0, 0))
        counted = (int(run.figures.get(CANNOT_RUN, 0)), int(run.figures.get("jobs", 0)))
        together[run.policy, run.placer] = (count + counted[0], jobs + counted[1])
    return tuple(
        note
        for (policy, placer), (count, jobs) in together.items()
        for note in notes_on_never(policy, placer, count=count, jobs=jobs)
    )


def _moves(run: RunFigures) -> PlacerMoves:
    jobs = int(run.figures.get("jobs", 0))
    restarts = round(float(run.figures.get("restarts_per_job", 0.0)) * jobs)
    return PlacerMoves(run.policy, run.placer, int(run.figures.get(BY_PLACER, 0)), restarts, jobs)


def common(runs: Sequence[Figures]) -> list[str]:
    """Return the names of the figures that every run has."""
    return [name for name in runs[0] if all(name in other for other in runs)]


def by_rule(known: Mapping[str, Value], rule: FairnessRule) -> dict[str, Value]:
    """Return the figures with those of finish-time fairness by this rule, plainly named."""
    others = {
        name_by_rule(figure, each)
        for each in FairnessRule
        for figure in (WORST_RHO, UNFAIR_FRACTION)
    }
    named = {figure: name_by_rule(figure, rule) for figure in (WORST_RHO, UNFAIR_FRACTION)}
    kept = {name: value for name, value in known.items() if name not in others}
    return kept | {figure: known[name] for figure, name in named.items() if name in known}


def of_fairness(by_rule: Mapping[FairnessRule, Fairness]) -> dict[str, float]:
    """Return worst rho and share of unfair jobs by every rule.

    Empty if no job was measured against itself alone.
    """
    found: dict[str, float] = {}
    for rule, fair in by_rule.items():
        if fair.rho:
            found |= {
                name_by_rule(WORST_RHO, rule): fair.worst,
                name_by_rule(UNFAIR_FRACTION, rule): fair.unfair_fraction,
            }
    return found
