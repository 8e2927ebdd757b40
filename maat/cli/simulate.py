"""`maat simulate`: one workload, one or several policies, a table or JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from maat.cli.condition_options import ConditionOptions
from maat.cli.figure_options import FigureNames, read_figures
from maat.cli.option_groups import takes_groups
from maat.cli.output import heading, print_json, print_table, printed_aside, say, warn, write_table
from maat.cli.output_files import check_outputs
from maat.cli.plot_options import PlotFile, figure_option, write_plot
from maat.cli.policy_options import PlacerName, Setting, named_policy, read_settings
from maat.cli.round_options import RoundSeconds
from maat.cli.run_options import Seed
from maat.cli.series_files import OF_RUN, series_of_runs, write_series
from maat.cli.workload_options import ClusterOptions, WorkloadOptions
from maat.laboratory.figures import (
    FIGURES,
    POOLED_P99,
    UNFAIR_FRACTION,
    WORST_RHO,
    figures_of,
)
from maat.laboratory.setup import Setup
from maat.library.fairness import fairness_of
from maat.library.plots import RunPlots
from maat.library.run import Run, run_scenario
from maat.library.tables import Table, joined
from maat.simulation.notes import notes_before

PolicyNames = Annotated[
    str, typer.Option(help="Policy; to compare several, separate them by commas.")
]


@dataclass(frozen=True)
class SimulateOutput:
    """What to print and write."""

    with_fairness: Annotated[
        bool,
        typer.Option(
            "--fairness",
            help="Add rho by each of its rules, against every job alone on an equal share; slow.",
        ),
    ] = False
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print one JSON object (a list for several policies), not rounded."
        ),
    ] = False
    csv_path: Annotated[
        Path | None,
        typer.Option("--csv", help="Write one line per job of each policy: when it ran, and what."),
    ] = None
    series_path: Annotated[
        Path | None,
        typer.Option(
            "--series",
            help="Write GPUs in use, efficiency, nodes, waits and every job over time: to one file "
            "if it ends in .json, else to a folder of CSV files.",
        ),
    ] = None
    plot_path: PlotFile = None
    figure: Annotated[str | None, figure_option(RunPlots)] = None
    figure_names: FigureNames = None

    def check(self, *, inputs: Sequence[Path]) -> None:
        """Check before the runs that what is asked for can be written. Raises InputError."""
        check_outputs(
            RunPlots,
            csv=self.csv_path,
            plot=self.plot_path,
            figure=self.figure,
            series=self.series_path,
            series_names=tuple(OF_RUN),
            inputs=inputs,
        )

    def write(self, runs: Mapping[str, Run]) -> None:
        """Write and draw what is asked for, by policy. Raises MaatError if it cannot be done."""
        if self.csv_path is not None:
            write_table(self.csv_path, jobs_table(runs.values()))
        if self.series_path is not None:
            write_series(series_of_runs(runs), self.series_path)
        write_plot(self.plot_path, self.figure, RunPlots(runs))

    def paths(self) -> dict[str, str]:
        """Return where tables are written, as a summary says it."""
        paths = {"jobs_csv": self.csv_path, "series": self.series_path}
        return {name: str(path) for name, path in paths.items() if path is not None}

    def rows(self) -> tuple[str, ...] | None:
        """Return the figures to print; None: those of the table. Raises InputError."""
        if self.figure_names is None:
            return None
        known = [name for name in FIGURES if name != POOLED_P99]
        return read_figures(self.figure_names, usual=[TABLE[0][0]], known=known)


TABLE: Sequence[tuple[str, str, str]] = (
    ("avg_jct_hours", "Average JCT, h", "{:.3f}"),
    ("median_jct_hours", "Median JCT, h", "{:.3f}"),
    ("p99_jct_hours", "99th percentile JCT, h", "{:.2f}"),
    ("avg_jct_hours_large", "Average JCT of jobs asking for > 4 GPUs, h", "{:.3f}"),
    ("avg_jct_hours_small", "Average JCT of the others, h", "{:.3f}"),
    ("makespan_hours", "Makespan, h", "{:.2f}"),
    ("avg_queueing_hours", "Average queueing delay, h", "{:.3f}"),
    ("avg_queueing_hours_large", "  of jobs asking for > 4 GPUs, h", "{:.3f}"),
    ("avg_queueing_hours_small", "  of the others, h", "{:.3f}"),
    ("avg_waiting_hours", "Average waiting in all, h", "{:.3f}"),
    ("avg_waiting_hours_large", "  of jobs asking for > 4 GPUs, h", "{:.3f}"),
    ("avg_waiting_hours_small", "  of the others, h", "{:.3f}"),
    ("gpu_hours_per_job", "GPU-hours per job", "{:.2f}"),
    ("utilisation_busy", "GPUs held while jobs are there", "{:.1%}"),
    ("utilisation", "GPUs held over the makespan", "{:.1%}"),
    ("restarts_per_job", "Restarts per job", "{:.2f}"),
    ("evictions", "Evictions by fragmentation", "{:d}"),
    ("contention_mean", "Contention, mean", "{:.1f}"),
    ("contention_max", "Contention, most", "{:d}"),
    ("restart_gpu_share", "GPU time in restarts", "{:.1%}"),
    ("policy_seconds_median", "Policy, seconds per round, median", "{:.4f}"),
    ("policy_seconds_p95", "  95th percentile", "{:.4f}"),
    ("placement_seconds_median", "Placement, seconds per round, median", "{:.4f}"),
    ("unfinished", "Jobs not finished", "{:d}"),
)
FAILURES_TABLE: Sequence[tuple[str, str, str]] = (
    ("failures", "Nodes that failed", "{:d}"),
    ("interruptions", "Times that a job lost its GPUs to one", "{:d}"),
    ("lost_gpu_hours", "GPU-hours done again", "{:.2f}"),
)
FAIRNESS_TABLE: Sequence[tuple[str, str, str]] = (
    ("rho_mean", "Finish-time fairness rho, mean", "{:.3f}"),
    ("rho_worst", "rho, worst", "{:.3f}"),
    ("unfair_fraction", "Jobs with rho > 1", "{:.1%}"),
    ("rho_ratio_to_mean_mean", "rho as ratio to the mean, mean", "{:.3f}"),
    ("rho_ratio_to_mean_worst", "rho as ratio to the mean, worst", "{:.3f}"),
    ("rho_share_of_type_mean", "rho on a share of each type, mean", "{:.3f}"),
    ("rho_share_of_type_worst", "rho on a share of each type, worst", "{:.3f}"),
    ("unfair_fraction_share_of_type", "Jobs with rho > 1 on a share of each type", "{:.1%}"),
    ("rho_static_mean", "rho by static contention, mean", "{:.3f}"),
    ("rho_static_worst", "rho by static contention, worst", "{:.3f}"),
    ("unfair_fraction_static", "Jobs with static rho > 1", "{:.1%}"),
)


@takes_groups
def simulate_command(
    workload: WorkloadOptions,
    hardware: ClusterOptions,
    condition: ConditionOptions,
    output: SimulateOutput,
    policy: PolicyNames = "sia",
    placer: PlacerName = None,
    setting: Setting = None,
    round_seconds: RoundSeconds = None,
    seed: Seed = 0,
) -> None:
    """Simulate a workload under one or more policies and print how the jobs fared."""
    models, cluster = hardware.read()
    conditions = condition.read(cluster, models, round_seconds=round_seconds)
    trace, parameters, rows = workload.read(models), read_settings(setting or []), output.rows()
    names = [named_policy(name) for name in policy.split(",")]
    condition.tuning.check_labels(names)
    output.check(inputs=[*workload.inputs(), *hardware.inputs(), *condition.inputs()])
    scenarios = [
        Setup(
            trace,
            models,
            cluster,
            policy=name,
            placer=placer,
            policy_parameters=parameters,
            conditions=conditions,
            seed=seed,
            tuned_by_policy=condition.tuning.by_label,
        ).scenario()
        for name in names
    ]
    warn(notes_before(scenarios[0].workload, conditions.round_seconds))
    with printed_aside():
        runs = [run_scenario(scenario, quiet=output.as_json) for scenario in scenarios]
    summaries = [{**run.summary, **output.paths()} for run in runs]
    if output.with_fairness:
        for summary, figures in zip(summaries, fairness_of([r.result for r in runs]), strict=True):
            summary |= figures
    try:
        output.write({run.result.scenario.policy: run for run in runs})
    finally:  # what was computed is printed, whatever becomes of the files
        if output.as_json:
            print_json(summaries[0] if len(summaries) == 1 else summaries)
        else:
            _print(runs, summaries, rows)


def _print(
    runs: Sequence[Run], summaries: Sequence[dict[str, Any]], rows: Sequence[str] | None
) -> None:
    """Print a table of the figures `rows`; None: of the usual ones."""
    if rows is None:
        _print_table(summaries, _usual(summaries), summaries)
        return
    shown = [(name, heading(FIGURES[name]), FIGURES[name].form) for name in rows]
    fair = any(name.startswith((WORST_RHO, UNFAIR_FRACTION)) for name in rows)
    known = [figures_of(run.result, fairness=None if fair else {}) for run in runs]
    _print_table(summaries, shown, known)


def jobs_table(runs: Iterable[Run]) -> Table:
    """Return the jobs of all runs below each other, each with its policy and placer."""
    scenarios = ((run.result.scenario, run.jobs) for run in runs)
    return joined(({"policy": s.policy, "placer": s.placer}, jobs) for s, jobs in scenarios)


def _usual(summaries: Sequence[Mapping[str, Any]]) -> Sequence[tuple[str, str, str]]:
    failed = FAILURES_TABLE if any(summary["failures"] for summary in summaries) else ()
    return (*TABLE, *failed, *(FAIRNESS_TABLE if "rho_mean" in summaries[0] else ()))


def _print_table(
    summaries: Sequence[dict[str, Any]],
    shown: Sequence[tuple[str, str, str]],
    figures: Sequence[Mapping[str, Any]],
) -> None:
    """Print one column per policy and one row per figure: its name, title and format.

    The width depends on the number of policies, not of figures.
    """
    first = summaries[0]
    say(
        f"{first['jobs']} jobs of {first['trace']} on {first['cluster']}, "
        f"fidelity {first['fidelity']}"
    )
    labels = [f"{summary['policy']} + {summary['placer']}" for summary in summaries]
    for note in dict.fromkeys(note for summary in summaries for note in _never(summary)):
        say(note)
    rows = [
        (title, *(_cell(known.get(key), form) for known in figures)) for key, title, form in shown
    ]
    print_table(("Policy + placer",), labels, rows)
    _print_notes(labels, summaries)


def _print_notes(labels: Sequence[str], summaries: Sequence[dict[str, Any]]) -> None:
    """Print notes on all policies once, the others with their policy."""
    said = {note for summary in summaries for note in _never(summary)}
    of_all = [
        note
        for note in summaries[0]["notes"]
        if all(note in summary["notes"] for summary in summaries)
    ]
    for line in (note for note in of_all if note not in said):
        say(line)
    for label, summary in zip(labels, summaries, strict=True):
        unfinished = (
            f"{name} did not finish. {why}" for name, why in summary["unfinished_because"].items()
        )
        own = (note for note in summary["notes"] if note not in of_all and note not in said)
        for line in (*own, *unfinished):
            say(f"{label}: {line}")


def _never(summary: Mapping[str, Any]) -> Sequence[str]:
    """Return the note on jobs that can never run, which comes first: it stands above the table."""
    notes: Sequence[str] = summary["notes"]
    return notes[:1] if summary["cannot_run"] else ()


def _cell(value: Any, form: str) -> str:
    """Format a figure, or a dash if there is none.

    An example is a completion time if no job completed.
    """
    return "-" if value is None else form.format(value)
