"""`maat simulate`: one workload, one or several policies, a table or JSON."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from maat.cli.dependent_options import read_interference, read_tuned, refuse_generator_options
from maat.cli.reserve import Mtbf, Repair, Reserve, read_failures, read_reservations
from maat.cli.variability_options import DrawRule, Penalties, VariabilityFolder, read_measured, read_penalties, with_draw
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import InputError, ParameterError
from maat.scheduling.metrics import FairnessRule
from maat.scheduling.policies import suiting_placer
from maat.simulation.engine import simulate
from maat.simulation.fidelity import FIDELITIES, ProfilingMode, fidelity
from maat.simulation.iteration_models import shipped_models
from maat.simulation.models import Model, measured_models
from maat.simulation.record import Position, SimulationResult
from maat.simulation.scenario import Scenario
from maat.simulation.tuned_jobs import TuningRule
from maat.simulation.workloads import Workload, read_workload

Trace = Annotated[
    Path | None, typer.Argument(help="Workload file; its format is recognised by its header, or its cells.", show_default=False)
]
Profiles = Annotated[
    Path | None, typer.Option(help="Folder of measured profiles, or a JSON table of throughputs; without it, the catalog's fitted models.")
]
Shape = Annotated[str, typer.Option(help="GPU types and nodes: type=NODESxGPUS,...")]
PolicyNames = Annotated[str, typer.Option(help="Policy; several are separated by commas and compared.")]
PlacerName = Annotated[str | None, typer.Option(help="Placer; by default the one that suits the policy.")]
Profiling = Annotated[ProfilingMode | None, typer.Option(help="What is known of a job before it runs; by default the fidelity's.")]
Setting = Annotated[list[str] | None, typer.Option("--set", help="A parameter of the policy: NAME=VALUE. May be repeated.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of whatever is left to chance.")]
RoundSeconds = Annotated[float | None, typer.Option(min=1.0, max=86400.0, help="Seconds between rounds; by default the policy's own.")]
Generated = Annotated[str | None, typer.Option("--generate", help="Make a workload instead of reading one: philly, helios or newtrace.")]
JobCount = Annotated[int | None, typer.Option("--jobs", min=1, help="Jobs to generate.")]
Hours = Annotated[float | None, typer.Option(min=0.01, help="Hours within which the generated jobs are submitted.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object (a list for several policies), not rounded.")]
RigidShare = Annotated[float, typer.Option("--rigid-share", help="Share of jobs bound to the trace's GPU count and batch size, 0-1.")]
StrongShare = Annotated[float, typer.Option("--strong-scaling-share", help="Share of jobs bound to the trace's batch size, 0-1.")]
WithFairness = Annotated[bool, typer.Option("--fairness", help="Also rho, against every job alone on an equal share; takes its time.")]
JobsPerGpu = Annotated[
    int, typer.Option("--jobs-per-gpu", help="How many jobs may share a GPU; above 1, --interference says what they lose.")
]
Shared = Annotated[
    str | None, typer.Option("--interference", help="What jobs on one GPU lose: a table (CSV, JSON), synthetic, or a number.")
]
FidelityName = Annotated[str, typer.Option("--fidelity", help=f"Preset of modelling switches: {', '.join(FIDELITIES)}.")]
TunedRule = Annotated[
    TuningRule | None,
    typer.Option("--tuned", help="Give jobs well-chosen GPU counts and batch sizes, and keep them: 50-80 % of the ideal speed-up."),
]
TunedGpus = Annotated[int | None, typer.Option("--tuned-gpus", min=1, help="Most GPUs that a tuned job asks for; by default 16.")]
CsvPath = Annotated[Path | None, typer.Option("--csv", help="Write name, submit, start, finish, restarts of every job.")]

TABLE: Sequence[tuple[str, str, str]] = (
    ("placer", "Placer", "{}"),
    ("avg_jct_hours", "Average JCT, h", "{:.3f}"),
    ("median_jct_hours", "Median JCT, h", "{:.3f}"),
    ("p99_jct_hours", "99th percentile JCT, h", "{:.2f}"),
    ("avg_jct_hours_large", "Average JCT of jobs asking for > 4 GPUs, h", "{:.3f}"),
    ("avg_jct_hours_small", "Average JCT of the others, h", "{:.3f}"),
    ("makespan_hours", "Makespan, h", "{:.2f}"),
    ("avg_queueing_hours", "Average queueing delay, h", "{:.3f}"),
    ("avg_queueing_hours_large", "  of jobs asking for > 4 GPUs, h", "{:.3f}"),
    ("avg_queueing_hours_small", "  of the others, h", "{:.3f}"),
    ("gpu_hours_per_job", "GPU-hours per job", "{:.2f}"),
    ("utilisation_busy", "GPUs held while jobs are there", "{:.1%}"),
    ("utilisation", "GPUs held over the makespan", "{:.1%}"),
    ("restarts_per_job", "Restarts per job", "{:.2f}"),
    ("evictions", "Evictions by fragmentation", "{:d}"),
    ("contention_mean", "Contention, mean", "{:.1f}"),
    ("contention_max", "Contention, most", "{:d}"),
    ("policy_seconds_median", "Seconds per round, median", "{:.4f}"),
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
    ("rho_static_mean", "rho by static contention, mean", "{:.3f}"),
    ("rho_static_worst", "rho by static contention, worst", "{:.3f}"),
    ("unfair_fraction_static", "Jobs with static rho > 1", "{:.1%}"),
)


def simulate_command(
    trace: Trace = None,
    profiles: Profiles = None,
    cluster: Shape = "t4=6x4,rtx=3x8,a100=2x8",
    policy: PolicyNames = "sia",
    placer: PlacerName = None,
    fidelity_name: FidelityName = "paper",
    profiling: Profiling = None,
    setting: Setting = None,
    seed: Seed = 0,
    round_seconds: RoundSeconds = None,
    generated: Generated = None,
    job_count: JobCount = None,
    hours: Hours = None,
    rigid_share: RigidShare = 0.0,
    strong_scaling_share: StrongShare = 0.0,
    mtbf_hours: Mtbf = None,
    repair_minutes: Repair = 30.0,
    reserve: Reserve = None,
    jobs_per_gpu: JobsPerGpu = 1,
    interference_name: Shared = None,
    variability: VariabilityFolder = None,
    variability_draw: DrawRule = None,
    locality_penalty: Penalties = None,
    tuned_rule: TunedRule = None,
    tuned_gpus: TunedGpus = None,
    with_fairness: WithFairness = False,
    as_json: AsJson = False,
    csv_path: CsvPath = None,
) -> None:
    """Play a workload through under one or more policies and print how the jobs fared."""
    preset = with_draw(fidelity(fidelity_name, profiling=profiling), variability_draw, variability)
    shape = Cluster.parse(cluster)
    models = measured_models(profiles, gpu_types=shape.type_names) if profiles is not None else shipped_models()
    workload = _workload(trace, generated, models, jobs=job_count, hours=hours, seed=seed)
    measured = read_measured(variability, cluster)
    penalties = read_penalties(locality_penalty or [], workload.models)
    names = [name.strip() for name in policy.split(",")]
    if csv_path is not None and len(names) > 1:
        raise InputError(
            "is written for one policy at a time", field="csv", value=str(csv_path), remedy="Name one policy, or leave --csv out."
        )
    if csv_path is not None:
        check_writable(csv_path)
    scenarios = [
        Scenario(
            workload,
            models,
            replace(shape, jobs_per_gpu=jobs_per_gpu),
            policy=name,
            placer=placer or suiting_placer(name),
            policy_parameters=read_settings(setting or []),
            fidelity=preset,
            round_seconds=round_seconds,
            seed=seed,
            rigid_share=rigid_share,
            strong_scaling_share=strong_scaling_share,
            failures=read_failures(mtbf_hours, repair_minutes),
            reservations=read_reservations(reserve or []),
            interference=read_interference(interference_name, jobs_per_gpu),
            variability=measured,
            locality_penalties=penalties,
            tuned=read_tuned(tuned_rule, tuned_gpus),
        )
        for name in names
    ]
    results = [_run(scenario, quiet=as_json or not sys.stderr.isatty()) for scenario in scenarios]
    summaries = [_summary(result, csv_path) for result in results]
    if with_fairness:
        _add_fairness(summaries, results)
    if as_json:
        typer.echo(json.dumps(summaries[0] if len(summaries) == 1 else summaries, indent=2))
    else:
        _print_table(summaries)


def _workload(
    trace: Path | None, generated: str | None, models: dict[str, Model] | Any, *, jobs: int | None, hours: float | None, seed: int
) -> Workload:
    if (trace is None) == (generated is None):
        raise InputError("is missing, or given twice", field="trace", remedy="Name a workload CSV, or use --generate philly.")
    if trace is not None:
        refuse_generator_options(jobs=jobs, hours=hours)
        return read_workload(trace, known_models=models)
    from maat.simulation.generators import generate

    return generate(str(generated), jobs=jobs, hours=hours, seed=seed)


def read_settings(pairs: Sequence[str]) -> dict[str, object]:
    """NAME=VALUE pairs, values read as JSON where they are JSON."""
    found: dict[str, object] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise ParameterError("does not read as NAME=VALUE", field="set", value=pair, remedy="Write for example --set p=-1.")
        try:
            found[name] = json.loads(text)
        except json.JSONDecodeError:
            found[name] = text
    return found


def _run(scenario: Scenario, *, quiet: bool) -> SimulationResult:
    if quiet:
        return simulate(scenario)
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("jobs ended, {task.fields[at]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(scenario.policy, total=len(scenario.workload), at="round 0")

        def show(position: Position) -> None:
            progress.update(task, completed=position.finished, at=f"round {position.round_number}, hour {position.now / 3600:.1f}")

        return simulate(scenario, on_progress=show)


def _summary(result: SimulationResult, csv_path: Path | None) -> dict[str, object]:
    summary = result.summary()
    if csv_path is not None:
        _write_csv(result, csv_path)
        summary["jobs_csv"] = str(csv_path)
    return summary


def _add_fairness(summaries: Sequence[dict[str, object]], results: Sequence[SimulationResult]) -> None:
    """rho by every rule, from isolated runs that all policies share."""
    from maat.simulation.fairness import IsolatedRuns, fairness, static_fairness

    alone = IsolatedRuns(results[0].scenario)
    for summary, result in zip(summaries, results, strict=True):
        fair = fairness(result, alone=alone)
        published = fairness(result, alone=alone, rule=FairnessRule.RATIO_TO_MEAN)
        static = static_fairness(result, alone=alone)
        summary |= {
            "rho_mean": fair.mean,
            "rho_median": fair.median,
            "rho_worst": fair.worst,
            "unfair_fraction": fair.unfair_fraction,
            "rho_ratio_to_mean_mean": published.mean,
            "rho_ratio_to_mean_worst": published.worst,
            "unfair_fraction_ratio_to_mean": published.unfair_fraction,
            "rho_static_mean": static.mean,
            "rho_static_worst": static.worst,
            "unfair_fraction_static": static.unfair_fraction,
        }


def check_writable(path: Path) -> None:
    """Before the work, not after it."""
    try:
        with path.open("a", encoding="utf-8"):
            pass
    except OSError as failed:
        raise InputError(
            f"cannot be written ({failed.strerror})", field="csv", value=str(path), remedy="Name a file in a folder that exists."
        ) from failed


def _write_csv(result: SimulationResult, path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("name", "submit", "start", "finish", "restarts"))
        for r in result.records:
            writer.writerow((r.name, r.submit, "" if r.start is None else r.start, "" if r.finish is None else r.finish, r.restarts))


def _print_table(summaries: Sequence[dict[str, Any]]) -> None:
    """One column per policy, one row per figure: as wide as the policies are many, not as the figures are."""
    from rich.console import Console
    from rich.table import Table

    first = summaries[0]
    typer.echo(f"{first['jobs']} jobs of {first['trace']} on {first['cluster']}, fidelity {first['fidelity']}")
    if first["jobs_per_gpu"] > 1:
        typer.echo(f"Up to {first['jobs_per_gpu']} jobs per GPU, interference: {first['interference']}")
    table = Table()
    table.add_column("")
    for summary in summaries:
        table.add_column(summary["policy"], justify="right")
    failed = FAILURES_TABLE if any(summary["failures"] for summary in summaries) else ()
    for key, heading, form in (*TABLE, *failed, *(FAIRNESS_TABLE if "rho_mean" in first else ())):
        table.add_row(heading, *(_cell(summary, key, form) for summary in summaries))
    Console().print(table)
    for summary in summaries:
        for line in (*summary["notes"], *(f"{name} did not finish. {why}" for name, why in summary["unfinished_because"].items())):
            typer.echo(f"{summary['policy']}: {line}")


def _cell(summary: dict[str, Any], key: str, form: str) -> str:
    """A figure, or a dash where there is none: of a completion time where no job completed."""
    return "-" if summary[key] is None else form.format(summary[key])
