"""The simulations of Sia beside its published simulator: traces, seeds, rules and metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from maat.papers.bench import Bench
from maat.papers.fidelity.published import RunFigures
from maat.papers.sia.policies import MEASURES
from maat.papers.sia.runs import HETEROGENEOUS, scenario
from maat.simulation.fidelity import fidelity
from maat.simulation.scenario import Scenario

ARTIFACT, PAPER = "sia-artifact", "paper"
TRACES = ("philly-1", "philly-2", "saturn-1", "saturn-2", "newtrace-1")
FIRST = TRACES[0]
SEEDS = tuple(range(10))


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure, and the deviations that are asked of it: shares of what was published.

    `each`: on a trace; `mean`: of the mean over the traces; None: unlimited.
    """

    name: str
    each: float | None = None
    mean: float | None = None

    @property
    def heading(self) -> str:
        return MEASURES[self.name]

    def of(self, figures: RunFigures) -> float:
        return float(getattr(figures, self.name))


METRICS = (
    Metric("avg_jct_hours", 0.05, 0.03),
    Metric("p99_jct_hours", 0.20, 0.12),
    Metric("makespan_hours", 0.07),
    Metric("gpu_hours_per_job", mean=0.10),
    Metric("restarts_per_job", mean=0.10),
)


def needs(*traces: str) -> tuple[str, ...]:
    """Return the published data without which these traces cannot be run."""
    parts = (trace.replace("-", "/workload-") for trace in traces)
    return ("sia profiles", *(f"sia trace {{}}/{part}" for part in parts))


def seeds(bench: Bench) -> Sequence[int]:
    """Return the seeds that break ties: ten, three for a quick look."""
    return bench.pick(SEEDS, quick=SEEDS[:3], tiny=SEEDS[:1])


def traces(bench: Bench) -> Sequence[str]:
    """Return the traces that the published simulator was run on; quick: the first."""
    return bench.pick(TRACES, quick=(FIRST,))


def played(
    bench: Bench,
    trace: str,
    rules: str,
    *,
    seed: int = 0,
    cluster: str = HETEROGENEOUS,
    **changes: Any,
) -> Scenario:
    """Return the simulation of a trace under a fidelity; `changes`: rules in which it differs."""
    family, number = trace.split("-")
    workload = bench.sia_trace(family, int(number), bench.sia_models())
    changed = replace(fidelity(rules), **changes)
    return scenario(bench, workload, cluster=cluster, seed=seed, fidelity=changed)


def difference(ours: float, theirs: float) -> float:
    """Return by which share of theirs ours is off: 0.1 is 10 % more."""
    return ours / theirs - 1


def percent(share: float) -> str:
    return f"{100 * share:+.1f} %"
