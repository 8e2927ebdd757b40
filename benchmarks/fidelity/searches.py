"""What the search of fits alone changes under `paper`: the published one beside the minimum's.

`python -m benchmarks.fidelity.searches` prints the section of docs/fidelity.md.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from statistics import fmean

from benchmarks.fidelity.metrics import difference, percent, table
from benchmarks.fidelity.runs import CLUSTER, PAPER
from maat.laboratory.fairness import IsolatedRuns, fairness
from maat.scheduling.cluster import Cluster
from maat.scheduling.fitting import FitSearch
from maat.simulation.conditions import Conditions
from maat.simulation.engine import simulate
from maat.simulation.fidelity import fidelity
from maat.simulation.scenario import Scenario
from maat.simulation.world_models import catalog_models, measured_models
from maat.workloads.generators import generate
from maat.workloads.reading import read_workload

TRACES = ("philly-1", "philly-2", "philly-3", "saturn-1", "saturn-2", "saturn-3")
GENERATED = ("generated-1", "generated-2", "generated-3")
GENERATED_CLUSTER, GENERATED_JOBS, GENERATED_HOURS = "t4=4x4,rtx=2x8,a100=1x8", 40, 2.0
HEADS = (
    "jobs",
    "average JCT, h",
    "p99 JCT, h",
    "restarts per job",
    "mean rho",
    "worst rho",
    "rho > 1",
)


@dataclass(frozen=True, slots=True)
class Row:
    """Figures of one run. rho is by one yardstick, whatever the run's search."""

    jct_hours: float
    p99_hours: float
    restarts: float
    mean_rho: float
    worst_rho: float
    unfair: float


def section(data: Path, *, processes: int) -> str:
    """Return the Markdown of the section. Simulates each trace under both searches."""
    runs = list(product((*TRACES, *GENERATED), FitSearch))
    with ProcessPoolExecutor(processes) as pool:
        rows = dict(zip(runs, pool.map(_play, runs, [data] * len(runs)), strict=True))
    pairs = {
        name: (rows[name, FitSearch.PUBLISHED], rows[name, FitSearch.MINIMUM])
        for name in (*TRACES, *GENERATED)
    }
    lines = [[name, *_cells(*pair)] for name, pair in pairs.items()]
    return (
        "## What the search of fits alone changes\n\n"
        "Under `paper`, fits end at the minimum of their loss; under `sia-artifact` and "
        "`pollux-artifact` where the published code ends (`fit_search`). Each cell is the figure "
        "with the minimum (and with the published search, the difference). Traces are played "
        f"with the published profiles on `{CLUSTER}`; *generated* are {GENERATED_JOBS} jobs of "
        f"the catalog within {GENERATED_HOURS:g} h on `{GENERATED_CLUSTER}`, by seed. rho is by "
        "one yardstick.\n\n" + table(HEADS, lines) + "\n\n" + _sentence(list(pairs.values()))
    )


def _cells(published: Row, minimum: Row) -> list[str]:
    return [
        f"{ours:.{digits}f} ({theirs:.{digits}f}, {percent(difference(ours, theirs))})"
        for ours, theirs, digits in (
            (minimum.jct_hours, published.jct_hours, 3),
            (minimum.p99_hours, published.p99_hours, 2),
            (minimum.restarts, published.restarts, 2),
            (minimum.mean_rho, published.mean_rho, 3),
            (minimum.worst_rho, published.worst_rho, 2),
        )
    ] + [f"{100 * minimum.unfair:.1f} % ({100 * published.unfair:.1f} %)"]


def _sentence(pairs: Sequence[tuple[Row, Row]]) -> str:
    def mean(of: Sequence[tuple[Row, Row]], field: str) -> str:
        return percent(fmean(difference(getattr(m, field), getattr(p, field)) for p, m in of))

    traces, generated = pairs[: len(TRACES)], pairs[len(TRACES) :]
    return (
        f"Means of the differences: traces {mean(traces, 'jct_hours')} of JCT and "
        f"{mean(traces, 'restarts')} of restarts; generated {mean(generated, 'jct_hours')} and "
        f"{mean(generated, 'restarts')}."
    )


def _play(run: tuple[str, FitSearch], data: Path) -> Row:
    name, search = run
    minimum = scenario_of(name, data)
    rules = replace(minimum.conditions.fidelity, fit_search=search)
    scenario = replace(minimum, conditions=replace(minimum.conditions, fidelity=rules))
    result = simulate(scenario)
    fair = fairness(result, alone=IsolatedRuns(minimum))
    metrics = result.metrics
    return Row(
        metrics.avg_jct_hours,
        metrics.p99_jct_hours,
        metrics.restarts_per_job,
        fair.mean,
        fair.worst,
        fair.unfair_fraction,
    )


def scenario_of(name: str, data: Path) -> Scenario:
    family, number = name.split("-")
    conditions = Conditions(fidelity=fidelity(PAPER))
    if name in GENERATED:
        workload = generate("philly", jobs=GENERATED_JOBS, hours=GENERATED_HOURS, seed=int(number))
        return Scenario(
            workload, catalog_models(), Cluster.parse(GENERATED_CLUSTER), conditions=conditions
        )
    models = measured_models(data / "profiles")
    workload = read_workload(
        data / "workloads" / family / f"workload-{number}.csv", known_models=models
    )
    return Scenario(workload, models, Cluster.parse(CLUSTER), conditions=conditions)


if __name__ == "__main__":
    folder = os.environ.get("MAAT_DATA") or sys.exit("MAAT_DATA is not set")
    print(section(Path(folder, "sia-artifact"), processes=2))
