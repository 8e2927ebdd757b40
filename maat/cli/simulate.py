"""`maat simulate`: one workload, one or several policies, a table or JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from maat.cli.condition_options import ConditionOptions
from maat.cli.figure_options import FigureNames, read_figures
from maat.cli.numbers import whole_option
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
from maat.cli.policy_options import PlacerName, Setting, named_policy, read_settings
from maat.cli.round_options import RoundSeconds
from maat.cli.series_files import check_series_path, write_series
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
from maat.library.run import Run, run_scenario
from maat.scheduling.errors import InputError
from maat.simulation.notes import notes_before
from maat.workloads.generators import MAX_SEED

PolicyNames = Annotated[
    str, typer.Option(help="Policy; to compare several, separate them by commas.")
]
Seed = Annotated[
    int, whole_option("--seed", least=0, most=MAX_SEED, help="Seed of all random choices.")
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
        typer.Option("--csv", help="Write name, submit, start, finish, restarts of every job."),
    ] = None
    series_path: Annotated[
        Path | None,
        typer.Option(
            "--series",
            help="Write GPUs in use, efficiency, nodes, waits and every job over time: to one file "
            "if it ends in .json, else to a folder of CSV files.",
        ),
    ] = None
    figure_names: FigureNames = None

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
    _check_output(
        output, names, inputs=[*workload.inputs(), *hardware.inputs(), *condition.inputs()]
    )
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
    runs = [run_scenario(scenario, quiet=output.as_json) for scenario in scenarios]
    summaries = [_summary(run, output) for run in runs]
    if output.with_fairness:
        for summary, figures in zip(summaries, fairness_of([r.result for r in runs]), strict=True):
            summary |= figures
    if output.as_json:
        print_json(summaries[0] if len(summaries) == 1 else summaries)
    elif rows is None:
        _print_table(summaries, _usual(summaries), summaries)
    else:
        shown = [(name, heading(FIGURES[name]), FIGURES[name].form) for name in rows]
        fair = any(name.startswith((WORST_RHO, UNFAIR_FRACTION)) for name in rows)
        known = [figures_of(run.result, fairness=None if fair else {}) for run in runs]
        _print_table(summaries, shown, known)


def _check_output(
    output: SimulateOutput, policies: Sequence[str], *, inputs: Sequence[Path]
) -> None:
    """Check before the runs that what is asked for can be written. Raises InputError."""
    for field, path in (("csv", output.csv_path), ("series", output.series_path)):
        if path is not None and len(policies) > 1:
            raise InputError(
                "is written for one policy at a time",
                field=field,
                value=str(path),
                remedy=f"Name one policy, or leave --{field} out.",
            )
    if output.csv_path is not None:
        check_writable(output.csv_path, inputs=inputs)
    if output.series_path is not None:
        check_series_path(output.series_path, inputs=inputs)


def _summary(run: Run, output: SimulateOutput) -> dict[str, object]:
    summary = dict(run.summary)
    if output.csv_path is not None:
        _write_csv(run, output.csv_path)
        summary["jobs_csv"] = str(output.csv_path)
    if output.series_path is not None:
        write_series(run, output.series_path)
        summary["series"] = str(output.series_path)
    return summary


def _write_csv(run: Run, path: Path) -> None:
    names = ("name", "submit", "start", "finish", "restarts")
    rows = (
        (
            job["name"],
            job["submit_seconds"],
            "" if job["start_seconds"] is None else job["start_seconds"],
            "" if job["finish_seconds"] is None else job["finish_seconds"],
            job["restarts"],
        )
        for job in run.jobs
    )
    write_csv(path, names, rows)


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
