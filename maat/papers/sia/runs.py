"""The simulations of Sia's evaluation: clusters, policies with their tuning, one scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from maat.laboratory.setup import grown
from maat.papers.bench import Bench
from maat.papers.items import Outcomes
from maat.papers.observation import Observation
from maat.scheduling.cluster import Cluster
from maat.scheduling.metrics import percentile_99
from maat.scheduling.policies import suiting_placer
from maat.simulation.conditions import Conditions
from maat.simulation.scenario import Scenario
from maat.simulation.tuned_jobs import TunedJobs
from maat.vocabulary import TuningRule
from maat.workloads.workloads import Workload

# section 4.3
HETEROGENEOUS, HOMOGENEOUS = "t4=6x4,rtx=3x8,a100=2x8", "t4=16x4"
PHYSICAL = "rtx=3x8,quad=1x4,a100=2x8"
MOST_TUNED_GPUS = {HETEROGENEOUS: 16, HOMOGENEOUS: 64, PHYSICAL: 16}
USES = ("sia profiles", "sia trace {}/philly/workload-1", "sia trace {}/saturn/workload-1")


@dataclass(frozen=True)
class Contender:
    """A policy of the paper's tables; `tuned`: with TunedJobs (TJ), as it cannot adapt."""

    policy: str
    tuned: bool = False


CONTENDERS: Mapping[str, Contender] = {
    "Sia": Contender("sia"),
    "Pollux": Contender("pollux"),
    "Gavel+TJ": Contender("gavel", tuned=True),
    "Shockwave+TJ": Contender("shockwave", tuned=True),
    "Themis+TJ": Contender("themis", tuned=True),
}
THREE = ("Sia", "Pollux", "Gavel+TJ")


def scenario(
    bench: Bench,
    workload: Workload,
    contender: str = "Sia",
    *,
    cluster: str = HETEROGENEOUS,
    nodes: int = 1,
    seed: int = 0,
    round_seconds: float | None = None,
    parameters: Mapping[str, object] | None = None,
    **conditions: Any,
) -> Scenario:
    """Return a simulation under a contender, by section 4.3's defaults.

    `nodes`: how many times as many nodes of every kind; `conditions`: what else differs.
    """
    of, parsed = CONTENDERS[contender], grown(Cluster.parse(cluster), nodes)
    tuned = TunedJobs(TuningRule.ANY_PAIR, MOST_TUNED_GPUS[cluster]) if of.tuned else None
    return Scenario(
        workload,
        bench.sia_models(),
        parsed,
        policy=of.policy,
        placer=suiting_placer(of.policy),
        policy_parameters=parameters or {},
        conditions=replace(Conditions(), **{"tuned": tuned, **conditions}),
        seed=seed,
        round_seconds=round_seconds,
    )


def of(outcomes: Outcomes, *label: str) -> Observation:
    """Return the observation of a run."""
    found: Observation = outcomes[label]
    return found


def each(outcomes: Outcomes, figure: str, *label: str) -> list[float]:
    """Return a figure of all runs whose label begins so: of each trace, or seed."""
    return [
        run.figures[figure]
        for key, run in outcomes.items()
        if key[: len(label)] == label and figure in run.figures
    ]


def pooled(outcomes: Outcomes, figure: str, *label: str) -> list[float]:
    """Return a figure of all runs whose label begins so, as the published scripts make it.

    p99 is over the jobs of all runs together, and the most contention that of any run; every other
    figure is one of each run.
    """
    if figure == "p99_jct_hours":
        runs = [run for key, run in outcomes.items() if key[: len(label)] == label]
        hours = np.array([hour for run in runs for hour in run.jct_hours()])
        return [percentile_99(hours)] if len(hours) else []
    values = each(outcomes, figure, *label)
    return [max(values)] if figure == "contention_max" and values else values


def firsts(outcomes: Outcomes, place: int = 0) -> list[str]:
    """Return the different words at a place of the labels, in order."""
    return list(dict.fromkeys(label[place] for label in outcomes))
