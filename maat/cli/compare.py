"""`maat compare`: policies with placers on the same traces and seeds.

Prints means with spread, and differences job by job with their uncertainty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from maat.cli.condition_options import ConditionOptions
from maat.cli.option_groups import takes_groups
from maat.cli.output import (
    check_writable,
    heading,
    print_json,
    print_table,
    say,
    warn,
    write_csv,
)
from maat.cli.policy_options import read_contestants
from maat.cli.round_options import Rounds, RoundsOfEach, read_rounds
from maat.cli.run_options import RunOptions
from maat.cli.workload_options import ClusterOptions, WorkloadsOptions
from maat.laboratory.comparison import (
    Basis,
    Contestant,
    Interval,
    Outcome,
    PairedDifference,
    Spread,
    as_data,
    paired,
    report,
    spreads,
)
from maat.laboratory.comparison_run import ComparisonPlan, ComparisonProgress, run_comparison
from maat.laboratory.figures import FIGURES, RunFigures, never_run, notes_on_runs
from maat.laboratory.setup import GeneratedTrace
from maat.library.progress import Bar
from maat.scheduling.errors import InputError
from maat.simulation.notes import notes_before

PolicyNames = Annotated[
    str,
    typer.Option(
        help="Policies, separated by commas; `all` for every one; "
        "LABEL=POLICY to use one twice with other parameters."
    ),
]
PlacerNames = Annotated[
    str | None,
    typer.Option(
        help="Placers, separated by commas, each with every policy; default: the policy's own."
    ),
]
Setting = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="A parameter of one policy, by its name or label: POLICY.NAME=VALUE, "
        "such as sia.p=-1. May be repeated.",
    ),
]
Baseline = Annotated[
    str | None,
    typer.Option(
        help="What to compare the others with: POLICY, POLICY+PLACER "
        "or a name as the tables show it; default: the first."
    ),
]


@dataclass(frozen=True)
class CompareOutput:
    """What to print and write."""

    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Print one JSON object with runs, means and paired differences, not rounded.",
        ),
    ] = False
    csv_path: Annotated[Path | None, typer.Option("--csv", help="Write one line per run.")] = None


COLUMNS: Sequence[tuple[str, str]] = (
    ("unfinished", "{:.0f}"),
    ("avg_jct_hours", "{:.3f}"),
    ("p99_jct_hours", "{:.2f}"),
    ("makespan_hours", "{:.2f}"),
    ("gpu_hours_per_job", "{:.2f}"),
    ("restarts_per_job", "{:.2f}"),
    ("worst_rho", "{:.2f}"),
    ("unfair_fraction", "{:.1%}"),
)


@takes_groups
def compare_command(
    workloads: WorkloadsOptions,
    hardware: ClusterOptions,
    condition: ConditionOptions,
    runs: RunOptions,
    output: CompareOutput,
    policy: PolicyNames = "sia,fifo,srtf",
    placer: PlacerNames = None,
    setting: Setting = None,
    baseline: Baseline = None,
    round_seconds: RoundsOfEach = None,
) -> None:
    """Compare policies and placers over traces and seeds, with their uncertainty."""
    rounds = read_rounds(round_seconds or [])
    contestants = read_contestants(policy, placer, setting or [], rounds.by_label)
    against = _baseline(baseline, contestants)
    models, cluster = hardware.read()
    conditions = condition.read(cluster, models, round_seconds=rounds.of_all)
    plan = ComparisonPlan(
        models, cluster, contestants, workloads.read(models), runs.seeds(), conditions
    )
    if output.csv_path is not None:
        check_writable(
            output.csv_path, inputs=[*workloads.inputs(), *hardware.inputs(), *condition.inputs()]
        )
    warn(
        note
        for workload in plan.first_workloads()
        for note in notes_before(workload, _shortest(rounds))
    )
    outcomes = _run(plan, runs, quiet=output.as_json)
    if output.csv_path is not None:
        _write_csv(outcomes, output.csv_path)
    if output.as_json:
        print_json(_as_json(plan, outcomes, against))
    else:
        _print(plan, outcomes, against)


def _shortest(rounds: Rounds) -> float | None:
    """Return the shortest given interval of rounds."""
    given = [rounds.of_all, *rounds.by_label.values()]
    return min((seconds for seconds in given if seconds is not None), default=None)


def _baseline(text: str | None, contestants: Sequence[Contestant]) -> Contestant:
    if text is None:
        return contestants[0]
    policy, _, placer = (part.strip() for part in text.partition("+"))
    for contestant in contestants:
        if text.strip() == contestant.name or (
            contestant.policy == policy and placer in ("", contestant.placer)
        ):
            return contestant
    known = ", ".join(c.name for c in contestants)
    raise InputError(
        "is not among the compared ones",
        field="baseline",
        value=text,
        remedy=f"Use one of: {known}.",
    )


def _run(plan: ComparisonPlan, runs: RunOptions, *, quiet: bool) -> tuple[Outcome, ...]:
    with Bar("runs", quiet=quiet, total=plan.size) as bar:

        def show(at: ComparisonProgress) -> None:
            bar.show(at.done, at.total)

        return run_comparison(plan, workers=runs.workers, cache=runs.cache, on_progress=show)


def _as_json(
    plan: ComparisonPlan, outcomes: Sequence[Outcome], against: Contestant
) -> dict[str, Any]:
    interference = plan.conditions.interference
    return {
        "cluster": plan.cluster.describe(),
        "jobs_per_gpu": plan.cluster.jobs_per_gpu,
        "interference": None if interference is None else interference.name,
        "fidelity": plan.conditions.fidelity.name,
        **report(outcomes, against),
        "runs": [
            {**as_data(o.contestant), "trace": o.trace, "seed": o.seed, "figures": o.figures}
            for o in outcomes
        ],
        "notes": (*never_run(_played(outcomes)), *_notes(plan, outcomes)),
    }


def _notes(plan: ComparisonPlan, outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    return (*plan.notes(), *notes_on_runs(_played(outcomes)))


def _played(outcomes: Sequence[Outcome]) -> list[RunFigures]:
    return [
        RunFigures(outcome.contestant.policy, outcome.contestant.placer, outcome.figures)
        for outcome in outcomes
    ]


def _write_csv(outcomes: Sequence[Outcome], path: Path) -> None:
    """Write one line per run; a figure is empty if it is unknown."""
    names = [name for name in FIGURES if any(name in o.figures for o in outcomes)]
    rows = (
        (
            o.contestant.name,
            o.contestant.policy,
            o.contestant.placer,
            o.trace,
            o.seed,
            *(o.figures.get(name, "") for name in names),
        )
        for o in outcomes
    )
    write_csv(path, ("contestant", "policy", "placer", "trace", "seed", *names), rows)


def _print(plan: ComparisonPlan, outcomes: Sequence[Outcome], against: Contestant) -> None:
    found = spreads(outcomes)
    runs = len(outcomes) // len(found)
    say(
        f"{runs} run(s) of each"
        + ("; mean ± sample standard deviation over runs" if runs > 1 else "")
    )
    say(
        f"{_trace_names(plan)} on {plan.cluster.describe()}, "
        f"fidelity {plan.conditions.fidelity.name}"
    )
    for line in never_run(_played(outcomes)):
        say(line)
    _print_means(found)
    differences = paired(outcomes, against)
    if differences:
        say(
            f"Job by job against {against.name}; "
            f"in brackets the 95 % interval {BASES[differences[0].basis]}"
        )
        _print_differences(differences)
        for note in (d.note for d in differences if d.note is not None):
            say(note)
    for line in _notes(plan, outcomes):
        say(line)


def _trace_names(plan: ComparisonPlan) -> str:
    return ", ".join(
        f"{trace.name} (generated)" if isinstance(trace.source, GeneratedTrace) else trace.name
        for trace in plan.traces
    )


BASES: Mapping[Basis, str] = {
    Basis.TRACES: "over the traces",
    Basis.SEEDS: "over the seeds of this one trace: it does not cover other traces",
    Basis.JOBS: "over the jobs of this one run: it does not cover other traces or seeds",
}


def _print_means(found: Mapping[Contestant, Mapping[str, Spread]]) -> None:
    rows = [
        (who.name, *(_cell(figures.get(key), form) for key, form in COLUMNS))
        for who, figures in found.items()
    ]
    print_table(("Policy + placer",), [heading(FIGURES[name]) for name, _ in COLUMNS], rows)


def _cell(spread: Spread | None, form: str) -> str:
    if spread is None:
        return "-"
    mean = form.format(spread.mean)
    return mean if spread.deviation is None else f"{mean} ± {form.format(spread.deviation)}"


def _print_differences(differences: Sequence[PairedDifference]) -> None:
    headings = (
        "JCT difference, h",
        "JCT ratio",
        "Jobs sooner",
        "Jobs compared",
        "Left out",
        "Mean JCT is",
    )
    rows = []
    for d in differences:
        hours, ratio = _interval(d.difference_hours, "{:+.3f}"), _interval(d.ratio, "{:.3f}")
        rows.append(
            (
                d.contestant.name,
                hours,
                ratio,
                f"{d.sooner:.0%}",
                str(d.jobs),
                str(d.left_out),
                d.verdict.value,
            )
        )
    print_table(("Policy + placer",), headings, rows)


def _interval(found: Interval, form: str) -> str:
    bounds = (
        "unknown"
        if found.low is None or found.high is None
        else f"{form.format(found.low)}, {form.format(found.high)}"
    )
    return f"{form.format(found.estimate)} [{bounds}]"
