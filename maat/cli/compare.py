"""`maat compare`: policies with placers on the same traces and seeds.

Prints means with spread, and differences job by job with their uncertainty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import typer

from maat.cli.condition_options import ConditionOptions
from maat.cli.figure_options import read_figures
from maat.cli.option_groups import takes_groups
from maat.cli.output import heading, print_json, print_table, printed_aside, say, warn
from maat.cli.plot_options import OF_MEANS, figure_option
from maat.cli.policy_options import read_contestants
from maat.cli.round_options import Rounds, RoundsOfEach, read_rounds
from maat.cli.run_options import RunOptions
from maat.cli.study_output import StudyOutput
from maat.cli.workload_options import ClusterOptions, WorkloadsOptions
from maat.laboratory.comparison import (
    Basis,
    Contestant,
    Interval,
    PairedDifference,
    Spread,
)
from maat.laboratory.comparison_run import ComparisonPlan
from maat.laboratory.figures import (
    FIGURES,
    POOLED_P99,
    UNFAIR_FRACTION,
    WORST_RHO,
)
from maat.laboratory.setup import GeneratedTrace
from maat.library.comparing import Comparison, baseline_of, run_plan
from maat.library.study_plots import ComparisonPlots
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
class CompareOutput(StudyOutput):
    plots = ComparisonPlots

    figure: Annotated[str | None, figure_option(ComparisonPlots, more=OF_MEANS)] = None

    def columns(self, *, several_runs: bool) -> tuple[str, ...]:
        """Return the figures of the table of means. Raises InputError."""
        usual = list(USUAL)
        if several_runs:
            usual.insert(usual.index("p99_jct_hours") + 1, POOLED_P99)
        return read_figures(self.figure_names, usual=usual, known=FIGURES, rule=self.rule)


USUAL = (
    "unfinished",
    "avg_jct_hours",
    "p99_jct_hours",
    "makespan_hours",
    "gpu_hours_per_job",
    "restarts_per_job",
    "contention_mean",
    WORST_RHO,
    UNFAIR_FRACTION,
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
    tuning = condition.tuning
    contestants = read_contestants(policy, placer, setting or [], rounds.by_label, tuning)
    against = baseline_of(baseline, contestants)
    models, cluster = hardware.read()
    conditions = condition.read(cluster, models, round_seconds=rounds.of_all)
    if tuning.by_label:  # then every policy has its own
        conditions = replace(conditions, tuned=None)
    plan = ComparisonPlan(
        models, cluster, contestants, workloads.read(models), runs.seeds(), conditions
    )
    columns = output.columns(several_runs=plan.size > len(contestants))
    output.check(inputs=[*workloads.inputs(), *hardware.inputs(), *condition.inputs()])
    warn(
        note
        for workload in plan.first_workloads()
        for note in notes_before(workload, _shortest(rounds))
    )
    with printed_aside():
        compared = run_plan(
            plan,
            against,
            workers=runs.workers,
            cache=runs.cache,
            series=output.needs_series,
            quiet=output.as_json,
        )
    try:
        output.write(compared, compared.runs)
    finally:  # what was computed is printed, whatever becomes of the files
        if output.as_json:
            print_json(compared.to_dict())
        else:
            _print(compared, columns)


def _shortest(rounds: Rounds) -> float | None:
    """Return the shortest given interval of rounds."""
    given = [rounds.of_all, *rounds.by_label.values()]
    return min((seconds for seconds in given if seconds is not None), default=None)


def _print(compared: Comparison, columns: Sequence[str]) -> None:
    plan = compared.plan
    runs = len(compared.outcomes) // len(compared.spreads)
    say(
        f"{runs} run(s) of each"
        + ("; mean ± sample standard deviation over runs" if runs > 1 else "")
    )
    say(
        f"{_trace_names(plan)} on {plan.cluster.describe()}, "
        f"fidelity {plan.conditions.fidelity.name}"
    )
    for line in compared.never_run:
        say(line)
    _print_means(compared.spreads, columns)
    if compared.paired:
        say(
            f"Job by job against {compared.baseline.name}; "
            f"in brackets the 95 % interval {BASES[compared.paired[0].basis]}"
        )
        _print_differences(compared.paired)
        for note in (d.note for d in compared.paired if d.note is not None):
            say(note)
    for line in compared.notes:
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


def _print_means(found: Mapping[Contestant, Mapping[str, Spread]], columns: Sequence[str]) -> None:
    rows = [
        (who.name, *(_cell(figures.get(name), FIGURES[name].form) for name in columns))
        for who, figures in found.items()
    ]
    print_table(("Policy + placer",), [heading(FIGURES[name]) for name in columns], rows)


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
