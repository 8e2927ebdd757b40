"""The simulations that `benchmarks.fidelity` compares with published ones.

Keeps what is needed of each. Measures no speed.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.fidelity.published import RunFigures
from maat.scheduling.belief import MemoisingFitter
from maat.scheduling.cluster import Cluster
from maat.scheduling.fitting import ACROSS_OVER_WITHIN, FitSearch
from maat.simulation.conditions import Conditions
from maat.simulation.engine import simulate
from maat.simulation.fidelity import GpuTimeRule, fidelity
from maat.simulation.record import SimulationResult
from maat.simulation.scenario import Scenario
from maat.simulation.world_models import measured_models
from maat.vocabulary import ProfilingMode
from maat.workloads.reading import read_workload

CLUSTER = "t4=6x4,rtx=3x8,a100=2x8"
ROUND_SECONDS = 60.0
ARTIFACT, PAPER = "sia-artifact", "paper"
ARTIFACT_TRACES = ("philly-1", "philly-2", "saturn-1", "saturn-2", "newtrace-1")
PAPER_TRACES = (
    "philly-1",
    "philly-2",
    "philly-3",
    "saturn-1",
    "saturn-2",
    "saturn-3",
    "newtrace-1",
)
SEEDS = tuple(range(10))
CHANGED_TRACES = ("philly-1", "saturn-1")
CHANGES: Mapping[str, Mapping[str, Any]] = {
    "no profile before the first run": {
        "profiling": ProfilingMode.NO_PROFILE,
        "project_by_constant": True,
    },
    "every configuration known before the first run": {"profiling": ProfilingMode.ORACLE},
    "time to an epoch's end rounded to a second": {"whole_second_epochs": True},
    "batches planned up to the trace's size": {"plan_within_trace_batch": True},
    "restart seconds as the published simulator counts them": {
        "policy_restart_seconds": {"cifar10": 30.0, "yolov3": 45.0}
    },
    "scale-up from the most GPUs ever held": {
        "policy_parameters": {"sia": {"scale_up_base": "largest"}}
    },
    "costs rounded to two decimals": {"policy_parameters": {"sia": {"utility_decimals": 2}}},
    "moves between nodes free where the shape stays": {"free_moves_of_same_shape": True},
    "GPU-hours by whole rounds": {"gpu_time": GpuTimeRule.WHOLE_ROUNDS},
    "moves of young jobs free": {"policy_parameters": {"sia": {"young_move_freely": True}}},
    "several nodes believed 1.1 of one until tried": {"across_over_within": ACROSS_OVER_WITHIN},
    "fits that end early, as published": {"fit_search": FitSearch.PUBLISHED},
}
ONE_TYPE_TRACE, ONE_TYPE_CLUSTER = "philly-1", "t4=16x4"
QUICK_TRACE, QUICK_SEEDS = "philly-1", 3


@cache
def _fitter(across_over_within: float, search: FitSearch) -> MemoisingFitter:
    """Return the fitter of this process: other seeds report the same samples again."""
    return MemoisingFitter(across_over_within=across_over_within, search=search)


@dataclass(frozen=True, slots=True)
class Run:
    """A simulation: a trace such as philly-1, a fidelity, and a seed to break ties.

    `change`: one of CHANGES, applied to the fidelity.
    """

    trace: str
    fidelity: str
    seed: int = 0
    cluster: str = CLUSTER
    change: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a run.

    `jct_hours`: of every job, sorted. `hours`: model -> GPU type -> GPU-hours per job of the model,
    in whole rounds.
    """

    figures: RunFigures
    jct_hours: tuple[float, ...]
    hours: dict[str, dict[str, float]]


def wanted(*, quick: bool) -> list[Run]:
    """Order the longest first, so that two processes end together."""
    seeded = [(trace, CLUSTER) for trace in ARTIFACT_TRACES] + [(ONE_TYPE_TRACE, ONE_TYPE_CLUSTER)]
    runs = [Run(trace, ARTIFACT, seed, cluster) for trace, cluster in seeded for seed in SEEDS]
    runs += [Run(trace, PAPER) for trace in PAPER_TRACES]
    runs += [Run(trace, PAPER, change=change) for change in CHANGES for trace in CHANGED_TRACES]
    chosen = [
        run for run in runs if not quick or (run.trace == QUICK_TRACE and run.seed < QUICK_SEEDS)
    ]
    return sorted(chosen, key=lambda run: not run.trace.startswith("newtrace"))


def play(run: Run, data: Path) -> Outcome:
    """Simulate one run on the measured profiles."""
    family, number = run.trace.split("-")
    models = measured_models(data / "profiles")
    workload = read_workload(
        data / "workloads" / family / f"workload-{number}.csv", known_models=models
    )
    rules = replace(fidelity(run.fidelity), **CHANGES.get(run.change, {}))
    scenario = Scenario(
        workload,
        models,
        Cluster.parse(run.cluster),
        conditions=Conditions(fidelity=rules),
        seed=run.seed,
    )
    return outcome_of(
        simulate(scenario, fitter=_fitter(rules.across_over_within, rules.fit_search))
    )


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
    """Return model -> type -> GPU-hours per job.

    Every round in which a job holds GPUs counts whole, the last too, as in the published scripts.
    """
    model_of = {record.name: record.model for record in result.records}
    end_of = {
        r.name: result.end_time
        if r.finish is None
        else math.ceil(r.finish / ROUND_SECONDS) * ROUND_SECONDS
        for r in result.records
    }
    jobs = {
        model: sum(m == model for m in model_of.values())
        for model in sorted(set(model_of.values()))
    }
    hours = {model: dict.fromkeys(result.gpus_by_type, 0.0) for model in jobs}
    until = dict(end_of)
    for span in reversed(result.spans):
        if span.gpu_type is not None:
            model = model_of[span.job]
            hours[model][span.gpu_type] += (
                (until[span.job] - span.start) * span.gpu_count / 3600 / jobs[model]
            )
        until[span.job] = span.start
    return hours


def play_all(
    runs: Sequence[Run], data: Path, *, processes: int, kept: Path | None = None
) -> dict[Run, Outcome]:
    """Return the outcome of every run.

    `kept`: a file of earlier outcomes; those are not simulated again, and new ones are added to it.
    """
    found = _read(kept)
    missing = [run for run in runs if run not in found]
    with ProcessPoolExecutor(processes) as pool:
        for run, outcome in zip(
            missing, pool.map(play, missing, [data] * len(missing)), strict=True
        ):
            print(
                f"{run.trace}, {run.fidelity}, seed {run.seed}: JCT "
                f"{outcome.figures.avg_jct_hours:.3f} h",
                file=sys.stderr,
            )
            found[run] = outcome
            if kept is not None:
                kept.write_text(
                    json.dumps([[asdict(run), asdict(outcome)] for run, outcome in found.items()]),
                    encoding="utf-8",
                )
    return {run: found[run] for run in runs}


def _read(kept: Path | None) -> dict[Run, Outcome]:
    if kept is None or not kept.is_file():
        return {}
    rows = json.loads(kept.read_text(encoding="utf-8"))
    return {
        Run(**run): Outcome(RunFigures(**row["figures"]), tuple(row["jct_hours"]), row["hours"])
        for run, row in rows
    }
