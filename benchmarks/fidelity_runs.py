"""The simulations that `benchmarks.fidelity` compares with published ones, and what is kept of each. Measures no speed."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.published import RunFigures
from maat.scheduling.cluster import Cluster
from maat.simulation.engine import Scenario, SimulationResult, simulate
from maat.simulation.fidelity import fidelity
from maat.simulation.models import measured_models
from maat.simulation.workloads import read_workload

CLUSTER = "t4=6x4,rtx=3x8,a100=2x8"
ROUND_SECONDS = 60.0
ARTIFACT, PAPER = "sia-artifact", "paper"
ARTIFACT_TRACES = ("philly-1", "philly-2", "saturn-1", "saturn-2", "newtrace-1")
PAPER_TRACES = ("philly-1", "philly-2", "philly-3", "saturn-1", "saturn-2", "saturn-3", "newtrace-1")
SEEDED_TRACE, SEEDS = "philly-1", tuple(range(10))
QUICK_TRACE = "philly-1"


@dataclass(frozen=True, slots=True)
class Run:
    """What is simulated: a trace such as philly-1 at a fidelity, ties broken by a seed."""

    trace: str
    fidelity: str
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run. `jct_hours`: of every job, sorted. `hours`: model -> GPU type -> GPU-hours per job of the model, whole rounds."""

    figures: RunFigures
    jct_hours: tuple[float, ...]
    hours: dict[str, dict[str, float]]


def wanted(*, quick: bool) -> list[Run]:
    """The longest first, so that two processes end together."""
    runs = [Run(trace, ARTIFACT) for trace in ARTIFACT_TRACES] + [Run(trace, PAPER) for trace in PAPER_TRACES]
    runs += [Run(SEEDED_TRACE, ARTIFACT, seed) for seed in SEEDS if seed]
    chosen = [run for run in runs if not quick or run.trace == QUICK_TRACE]
    return sorted(chosen, key=lambda run: not run.trace.startswith("newtrace"))


def play(run: Run, data: Path) -> Outcome:
    """Simulate one run on the measured profiles."""
    family, number = run.trace.split("-")
    models = measured_models(data / "profiles")
    workload = read_workload(data / "workloads" / family / f"workload-{number}.csv", known_models=models)
    scenario = Scenario(workload, models, Cluster.parse(CLUSTER), fidelity=fidelity(run.fidelity), seed=run.seed)
    return outcome_of(simulate(scenario))


def outcome_of(result: SimulationResult) -> Outcome:
    m = result.metrics
    figures = RunFigures(
        m.avg_jct_hours,
        m.p99_jct_hours,
        m.makespan_hours,
        m.gpu_hours_per_job,
        m.restarts_per_job,
        m.contention_mean,
        m.contention_max,
    )
    jct = sorted(record.jct / 3600 for record in result.records if record.jct is not None)
    return Outcome(figures, tuple(jct), whole_round_hours(result))


def whole_round_hours(result: SimulationResult) -> dict[str, dict[str, float]]:
    """Model -> type -> GPU-hours per job: every round in which a job holds GPUs counts whole, also its last, as the published scripts count."""
    model_of = {record.name: record.model for record in result.records}
    end_of = {r.name: result.end_time if r.finish is None else math.ceil(r.finish / ROUND_SECONDS) * ROUND_SECONDS for r in result.records}
    jobs = {model: sum(m == model for m in model_of.values()) for model in sorted(set(model_of.values()))}
    hours = {model: dict.fromkeys(result.gpus_by_type, 0.0) for model in jobs}
    until = dict(end_of)
    for span in reversed(result.spans):
        if span.gpu_type is not None:
            model = model_of[span.job]
            hours[model][span.gpu_type] += (until[span.job] - span.start) * span.gpu_count / 3600 / jobs[model]
        until[span.job] = span.start
    return hours


def play_all(runs: Sequence[Run], data: Path, *, processes: int) -> dict[Run, Outcome]:
    found: dict[Run, Outcome] = {}
    with ProcessPoolExecutor(processes) as pool:
        for run, outcome in zip(runs, pool.map(play, runs, [data] * len(runs)), strict=True):
            print(f"{run.trace}, {run.fidelity}, seed {run.seed}: JCT {outcome.figures.avg_jct_hours:.3f} h", file=sys.stderr)
            found[run] = outcome
    return found
