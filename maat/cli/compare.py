"""`maat compare`: any policies with any placers on the same traces and seeds; means with spread, and job by job with uncertainty."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from maat.cli.dependent_options import read_interference, read_tuned, refuse_generator_options
from maat.cli.reserve import Mtbf, Repair, Reserve, read_failures, read_reservations
from maat.cli.simulate import (
    FidelityName,
    Hours,
    JobCount,
    JobsPerGpu,
    Profiles,
    Profiling,
    RigidShare,
    RoundSeconds,
    Shape,
    Shared,
    StrongShare,
    TunedGpus,
    TunedRule,
    check_writable,
)
from maat.cli.sweep import CacheFolder, Seeds, Workers, read_seeds
from maat.cli.variability_options import DrawRule, Penalties, VariabilityFolder, read_measured, read_penalties, with_draw
from maat.scheduling.errors import InputError
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES, suiting_placer
from maat.simulation.comparison import (
    Basis,
    Contest,
    Contestant,
    Interval,
    Outcome,
    PairedDifference,
    Played,
    Spread,
    Trace,
    paired,
    report,
    run_contest,
    spreads,
)
from maat.simulation.fidelity import fidelity
from maat.simulation.generators import FAMILIES
from maat.simulation.iteration_models import shipped_models
from maat.simulation.models import measured_models
from maat.simulation.sweep import GeneratedTrace, GivenTrace, Setup
from maat.simulation.workloads import read_workload

Traces = Annotated[list[Path] | None, typer.Argument(help="Workload CSVs.", show_default=False)]
PolicyNames = Annotated[str, typer.Option(help="Policies, separated by commas; `all` for every one.")]
PlacerNames = Annotated[
    str | None, typer.Option(help="Placers, separated by commas, each with every policy; by default the one that suits.")
]
Baseline = Annotated[str | None, typer.Option(help="What the others are set against: POLICY or POLICY+PLACER; by default the first.")]
Families = Annotated[str | None, typer.Option("--generate", help="Make workloads, anew with every seed: philly, helios, newtrace.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object with runs, means and paired differences, not rounded.")]
CsvPath = Annotated[Path | None, typer.Option("--csv", help="Write one line per run.")]

COLUMNS: Sequence[tuple[str, str, str]] = (
    ("unfinished", "Unfinished", "{:.0f}"),
    ("avg_jct_hours", "JCT, h", "{:.3f}"),
    ("p99_jct_hours", "p99 JCT, h", "{:.2f}"),
    ("makespan_hours", "Makespan, h", "{:.2f}"),
    ("gpu_hours_per_job", "GPU-h per job", "{:.2f}"),
    ("restarts_per_job", "Restarts", "{:.2f}"),
    ("worst_rho", "Worst rho", "{:.2f}"),
    ("unfair_fraction", "Unfair share", "{:.1%}"),
)
WIDTH = 140  # characters, where the output is no terminal


def compare_command(
    traces: Traces = None,
    policy: PolicyNames = "sia,fifo,srtf",
    placer: PlacerNames = None,
    baseline: Baseline = None,
    seeds: Seeds = "0",
    profiles: Profiles = None,
    cluster: Shape = "t4=6x4,rtx=3x8,a100=2x8",
    fidelity_name: FidelityName = "paper",
    profiling: Profiling = None,
    round_seconds: RoundSeconds = None,
    generated: Families = None,
    job_count: JobCount = None,
    hours: Hours = None,
    variability: VariabilityFolder = None,
    variability_draw: DrawRule = None,
    locality_penalty: Penalties = None,
    jobs_per_gpu: JobsPerGpu = 1,
    interference_name: Shared = None,
    tuned_rule: TunedRule = None,
    tuned_gpus: TunedGpus = None,
    rigid_share: RigidShare = 0.0,
    strong_scaling_share: StrongShare = 0.0,
    mtbf_hours: Mtbf = None,
    repair_minutes: Repair = 30.0,
    reserve: Reserve = None,
    workers: Workers = None,
    cache: CacheFolder = None,
    as_json: AsJson = False,
    csv_path: CsvPath = None,
) -> None:
    """Run every policy with every placer on every trace and seed, and say what differs and how sure that is."""
    contestants = read_contestants(policy, placer)
    against = _baseline(baseline, contestants)
    models = measured_models(profiles) if profiles is not None else shipped_models()
    given = [Trace(f"{path.parent.name}/{path.stem}", GivenTrace(read_workload(path, known_models=models))) for path in traces or []]
    made = [Trace(name, GeneratedTrace(name, job_count, hours)) for name in _families(generated)]
    if not given and not made:
        raise InputError("is missing", field="trace", remedy="Name workload CSVs, or use --generate philly.")
    if not made:
        refuse_generator_options(jobs=job_count, hours=hours)
    base = Setup(
        (given + made)[0].source,
        models,
        cluster,
        fidelity=with_draw(fidelity(fidelity_name, profiling=profiling), variability_draw, variability),
        round_seconds=round_seconds,
        variability=read_measured(variability, cluster),
        locality_penalties=read_penalties(locality_penalty or [], models),
        jobs_per_gpu=jobs_per_gpu,
        interference=read_interference(interference_name, jobs_per_gpu),
        tuned=read_tuned(tuned_rule, tuned_gpus),
        rigid_share=rigid_share,
        strong_scaling_share=strong_scaling_share,
        failures=read_failures(mtbf_hours, repair_minutes),
        reservations=read_reservations(reserve or []),
    )
    contest = Contest(base, contestants, tuple(given + made), read_seeds(seeds))
    if csv_path is not None:
        check_writable(csv_path)
    outcomes = _run(contest, workers or os.cpu_count() or 1, cache, quiet=as_json or not sys.stderr.isatty())
    if csv_path is not None:
        _write_csv(outcomes, csv_path)
    if as_json:
        typer.echo(json.dumps(_as_json(outcomes, against), indent=2))
    else:
        _print(outcomes, against)


def read_contestants(policies: str, placers: str | None) -> tuple[Contestant, ...]:
    """Every policy with every placer. Raises UnknownNameError naming what does not exist."""
    names = POLICIES.names if policies.strip() == "all" else tuple(name.strip() for name in policies.split(","))
    chosen = None if placers is None else [PLACERS.entry(name.strip()).name for name in placers.split(",")]
    return tuple(Contestant(POLICIES.entry(name).name, where) for name in names for where in chosen or [suiting_placer(name)])


def _baseline(text: str | None, contestants: Sequence[Contestant]) -> Contestant:
    if text is None:
        return contestants[0]
    policy, _, placer = (part.strip() for part in text.partition("+"))
    for contestant in contestants:
        if contestant.policy == policy and placer in ("", contestant.placer):
            return contestant
    known = ", ".join(f"{c.policy}+{c.placer}" for c in contestants)
    raise InputError("is not among what is compared", field="baseline", value=text, remedy=f"Use one of: {known}.")


def _families(text: str | None) -> list[str]:
    names = [] if text is None else [name.strip() for name in text.split(",")]
    for name in names:
        if name not in FAMILIES:
            raise InputError("is no family of workloads", field="generate", value=name, remedy=f"Use one of: {', '.join(FAMILIES)}.")
    return names


def _run(contest: Contest, workers: int, cache: Path | None, *, quiet: bool) -> tuple[Outcome, ...]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("runs"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=quiet) as bar:
        task = bar.add_task("runs", total=contest.size)

        def show(at: Played) -> None:
            bar.update(task, completed=at.done)

        return run_contest(contest, workers=workers, cache=cache, on_progress=show)


def _as_json(outcomes: Sequence[Outcome], against: Contestant) -> dict[str, Any]:
    runs = [{**asdict(o.contestant), "trace": o.trace, "seed": o.seed, "figures": o.figures} for o in outcomes]
    return {**report(outcomes, against), "runs": runs}


def _write_csv(outcomes: Sequence[Outcome], path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("policy", "placer", "trace", "seed", *outcomes[0].figures))
        writer.writerows((o.contestant.policy, o.contestant.placer, o.trace, o.seed, *o.figures.values()) for o in outcomes)


def _print(outcomes: Sequence[Outcome], against: Contestant) -> None:
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    found = spreads(outcomes)
    runs = len(outcomes) // len(found)
    typer.echo(f"{runs} run(s) of each" + ("; mean ± sample standard deviation over runs" if runs > 1 else ""))
    console.print(_table_of_means(found))
    differences = paired(outcomes, against)
    if differences:
        typer.echo(f"Job by job against {against.name}; in brackets the 95 % interval {BASES[differences[0].basis]}")
        console.print(_table_of_differences(differences))


BASES: Mapping[Basis, str] = {
    Basis.TRACES: "over the traces",
    Basis.SEEDS: "over the seeds of this one trace: it says nothing of other traces",
    Basis.JOBS: "over the jobs of this one run: it says nothing of other traces or seeds",
}


def _table_of_means(found: Mapping[Contestant, Mapping[str, Spread]]) -> Any:
    from rich.table import Table

    table = Table()
    table.add_column("Policy + placer", no_wrap=True)
    for _, heading, _ in COLUMNS:
        table.add_column(heading, justify="right")
    for who, figures in found.items():
        table.add_row(who.name, *(_cell(figures.get(key), form) for key, _, form in COLUMNS))
    return table


def _cell(spread: Spread | None, form: str) -> str:
    if spread is None:
        return "-"
    mean = form.format(spread.mean)
    return mean if spread.deviation is None else f"{mean} ± {form.format(spread.deviation)}"


def _table_of_differences(differences: Sequence[PairedDifference]) -> Any:
    from rich.table import Table

    table = Table()
    table.add_column("Policy + placer", no_wrap=True)
    for heading in ("JCT difference, h", "JCT ratio", "Jobs sooner", "Jobs compared", "Mean JCT is"):
        table.add_column(heading, justify="right")
    for d in differences:
        hours, ratio = _interval(d.difference_hours, "{:+.3f}"), _interval(d.ratio, "{:.3f}")
        table.add_row(d.contestant.name, hours, ratio, f"{d.sooner:.0%}", str(d.jobs), d.verdict.value)
    return table


def _interval(found: Interval, form: str) -> str:
    """With the bracket escaped: it is no markup."""
    bounds = "unknown" if found.low is None or found.high is None else f"{form.format(found.low)}, {form.format(found.high)}"
    return f"{form.format(found.estimate)} \\[{bounds}]"
