"""`maat sweep`: one simulation with one or two of its settings varied, over several seeds; a table, JSON or CSV."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from maat.cli.dependent_options import read_interference, read_tuned, refuse_generator_options
from maat.cli.reserve import Mtbf, Repair, Reserve, read_failures, read_reservations
from maat.cli.simulate import (
    FidelityName,
    Generated,
    Hours,
    JobCount,
    JobsPerGpu,
    PlacerName,
    Profiles,
    Profiling,
    RigidShare,
    RoundSeconds,
    Setting,
    Shape,
    Shared,
    StrongShare,
    Trace,
    TunedGpus,
    TunedRule,
    check_writable,
    read_settings,
)
from maat.cli.variability_options import DrawRule, Penalties, VariabilityFolder, read_measured, read_penalties, with_draw
from maat.scheduling.errors import InputError, ParameterError
from maat.simulation.fidelity import fidelity
from maat.simulation.iteration_models import shipped_models
from maat.simulation.models import measured_models
from maat.simulation.sweep import GeneratedTrace, GivenTrace, Row, Setup, Sweep, TraceSource, Varied
from maat.simulation.sweep_runner import Origin, ResultCache, SweepPosition, SweepResult, run_sweep
from maat.simulation.workloads import read_workload

Vary = Annotated[list[str] | None, typer.Option("--vary", help="What is varied: NAME=VALUE,VALUE,... Once or twice.")]
Seeds = Annotated[str, typer.Option("--seeds", help="Seeds of every point; a generated workload is drawn anew with each.")]
Workers = Annotated[int | None, typer.Option("--workers", min=1, max=256, help="Processes; by default one per core.")]
CacheFolder = Annotated[Path | None, typer.Option("--cache", help="Folder of results: what stands there is not simulated again.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object with every point and every mean, not rounded.")]
CsvPath = Annotated[Path | None, typer.Option("--csv", help="Write one line per point: settings, seed and figures.")]

TABLE: Sequence[tuple[str, str, str]] = (
    ("avg_jct_hours", "JCT, h", "{:.3f}"),
    ("p99_jct_hours", "p99 JCT, h", "{:.2f}"),
    ("makespan_hours", "Makespan, h", "{:.2f}"),
    ("gpu_hours_per_job", "GPU-h per job", "{:.3f}"),
    ("restarts_per_job", "Restarts per job", "{:.2f}"),
    ("unfair_fraction", "Unfair share", "{:.3f}"),
)


def sweep_command(
    trace: Trace = None,
    vary: Vary = None,
    seeds: Seeds = "0",
    workers: Workers = None,
    cache: CacheFolder = None,
    profiles: Profiles = None,
    cluster: Shape = "t4=6x4,rtx=3x8,a100=2x8",
    policy: Annotated[str, typer.Option(help="Policy; to compare several, use --vary policy=sia,fifo.")] = "sia",
    placer: PlacerName = None,
    fidelity_name: FidelityName = "paper",
    profiling: Profiling = None,
    setting: Setting = None,
    round_seconds: RoundSeconds = None,
    generated: Generated = None,
    job_count: JobCount = None,
    hours: Hours = None,
    rigid_share: RigidShare = 0.0,
    strong_scaling_share: StrongShare = 0.0,
    mtbf_hours: Mtbf = None,
    repair_minutes: Repair = 30.0,
    reserve: Reserve = None,
    variability: VariabilityFolder = None,
    variability_draw: DrawRule = None,
    locality_penalty: Penalties = None,
    jobs_per_gpu: JobsPerGpu = 1,
    interference_name: Shared = None,
    tuned_rule: TunedRule = None,
    tuned_gpus: TunedGpus = None,
    as_json: AsJson = False,
    csv_path: CsvPath = None,
) -> None:
    """Vary one or two settings of a simulation and print how the figures move, with their spread over the seeds."""
    models = measured_models(profiles) if profiles is not None else shipped_models()
    base = Setup(
        _source(trace, generated, models, jobs=job_count, hours=hours),
        models,
        cluster,
        policy=policy,
        placer=placer,
        policy_parameters=read_settings(setting or []),
        fidelity=with_draw(fidelity(fidelity_name, profiling=profiling), variability_draw, variability),
        round_seconds=round_seconds,
        rigid_share=rigid_share,
        strong_scaling_share=strong_scaling_share,
        failures=read_failures(mtbf_hours, repair_minutes),
        reservations=read_reservations(reserve or []),
        variability=read_measured(variability, cluster),
        locality_penalties=read_penalties(locality_penalty or [], models),
        jobs_per_gpu=jobs_per_gpu,
        interference=read_interference(interference_name, jobs_per_gpu),
        tuned=read_tuned(tuned_rule, tuned_gpus),
    )
    sweep = Sweep(base, tuple(_varied(text) for text in vary or []), read_seeds(seeds))
    points = sweep.points()
    if csv_path is not None:
        check_writable(csv_path)
    kept = None if cache is None else ResultCache(cache)
    with _Progress(quiet=as_json or not sys.stderr.isatty()) as progress:
        result = run_sweep(points, workers=workers or os.cpu_count() or 1, cache=kept, on_progress=progress.show)
    _say_repaired(result)
    if csv_path is not None:
        _write_csv(result, csv_path)
    if as_json:
        typer.echo(json.dumps(_as_json(sweep, result), indent=2))
    else:
        _print_table(sweep, result)


def _source(trace: Path | None, generated: str | None, models: Any, *, jobs: int | None, hours: float | None) -> TraceSource:
    if (trace is None) == (generated is None):
        raise InputError("is missing, or given twice", field="trace", remedy="Name a workload CSV, or use --generate philly.")
    if trace is None:
        return GeneratedTrace(str(generated), jobs, hours)
    refuse_generator_options(jobs=jobs, hours=hours)
    return GivenTrace(read_workload(trace, known_models=models))


def _varied(text: str) -> Varied:
    """`p=-1,0.5` as an axis and its values."""
    name, equals, values = text.partition("=")
    if not equals:
        raise ParameterError(
            "does not read as NAME=VALUE,VALUE,...", field="vary", value=text, remedy="Write for example --vary round_seconds=60,120."
        )
    return Varied.of(name.strip(), [value.strip() for value in values.split(",") if value.strip()])


def read_seeds(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise ParameterError(
            "are not whole numbers with commas between", field="seeds", value=text, remedy="Write for example --seeds 0,1,2."
        ) from None


class _Progress:
    """A bar on a terminal, silence elsewhere."""

    def __init__(self, *, quiet: bool) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True, disable=quiet)
        self._task = self._bar.add_task("points")

    def __enter__(self) -> _Progress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def show(self, at: SweepPosition) -> None:
        self._bar.update(self._task, completed=at.done, total=at.total, description=f"points, {at.simulated} simulated")


def _say_repaired(result: SweepResult) -> None:
    count = sum(point.origin is Origin.REPAIRED for point in result.points)
    if count:
        typer.echo(f"maat: {count} kept result(s) were damaged and have been simulated again", err=True)


def _as_json(sweep: Sweep, result: SweepResult) -> dict[str, object]:
    base = sweep.base
    return {
        "cluster": base.cluster,
        "policy": base.policy,
        "fidelity": base.fidelity.name,
        "axes": [{"name": v.axis.name, "title": v.axis.title, "unit": v.axis.unit, "values": v.values} for v in sweep.axes],
        "seeds": sweep.seeds,
        "points": [asdict(point) for point in result.points],
        "rows": [asdict(row) for row in result.rows()],
    }


def _write_csv(result: SweepResult, path: Path) -> None:
    first = result.points[0]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow((*first.settings, "seed", *first.figures))
        writer.writerows((*point.settings.values(), point.seed, *point.figures.values()) for point in result.points)


def _print_table(sweep: Sweep, result: SweepResult) -> None:
    from rich.console import Console
    from rich.table import Table

    simulated = len({point.key for point in result.points if point.origin is not Origin.CACHE})
    seeds = ", ".join(map(str, sweep.seeds))
    over = f"mean ± sample standard deviation over seeds {seeds}" if len(sweep.seeds) > 1 else f"seed {seeds}"
    typer.echo(f"{len(result.points)} points, {simulated} simulated; {over}")
    table = Table()
    for varied in sweep.axes:
        table.add_column(varied.axis.name, justify="right")
    for _, heading, _ in TABLE:
        table.add_column(heading, justify="right")
    for row in result.rows():
        table.add_row(*(_value(value) for value in row.settings.values()), *(_cell(row, key, form) for key, _, form in TABLE))
    Console().print(table)


def _value(value: float | int | str) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _cell(row: Row, key: str, form: str) -> str:
    mean = form.format(row.mean[key])
    return f"{mean} ± {form.format(row.spread[key])}" if len(row.seeds) > 1 else mean
