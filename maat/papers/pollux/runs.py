"""The simulations of Pollux's evaluation: cluster, policies, workloads, one scenario."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from maat.papers.bench import Bench
from maat.papers.items import Label, Outcomes, Run, WithRho
from maat.papers.observation import Observation
from maat.scheduling.cluster import Cluster
from maat.scheduling.policies import suiting_placer
from maat.simulation.conditions import Conditions
from maat.simulation.fidelity import Fidelity, fidelity
from maat.simulation.scenario import Scenario
from maat.simulation.tuned_jobs import TunedJobs
from maat.vocabulary import MeasurementKind, TuningRule
from maat.workloads.workloads import Workload

GPU, PER_NODE, CLUSTER = "t4", 4, "t4=16x4"  # section 5.1
USES = (
    "sia profiles",
    "pollux trace {}/workloads/workload-1",
    "pollux trace {}/workloads-realistic/workload-1",
)
REALISTIC = "-realistic"


@dataclass(frozen=True)
class Contender:
    """A line of table 2: a policy, and whose GPU counts and batch sizes its jobs have."""

    policy: str
    parameters: Mapping[str, object] = field(default_factory=dict)
    load: str = ""


POLLUX = "Pollux (p = -1)"
OPTIMUS, TIRESIAS = "Optimus+Oracle+TunedJobs", "Tiresias+TunedJobs"
CONTENDERS: Mapping[str, Contender] = {
    POLLUX: Contender("pollux"),
    OPTIMUS: Contender("optimus"),
    TIRESIAS: Contender("tiresias"),
    "Optimus+Oracle": Contender("optimus", load=REALISTIC),
    "Tiresias": Contender("tiresias", load=REALISTIC),
    "Pollux (p = +1)": Contender("pollux", {"p": 1.0}),
    "Pollux (p = -10)": Contender("pollux", {"p": -10.0}),
}
THREE = (POLLUX, OPTIMUS, TIRESIAS)


def rules() -> Fidelity:
    """Return the rules of the published simulator."""
    return fidelity("pollux-artifact")


def numbers(bench: Bench, load: str = "") -> list[int]:
    """Return the numbers of the workloads at hand, of eight; quick: the first."""
    there = [
        n for n in range(1, 9) if bench.data.has("pollux trace {}", f"workloads{load}/workload-{n}")
    ]
    there = there or [1, 2, 3]
    return bench.pick(there, quick=there[:1])


def traces(bench: Bench, load: str = "") -> Mapping[str, Workload]:
    """Return the workloads at hand, by name; or one's own trace alone."""
    models = bench.sia_models()
    own = bench.own_trace(models)
    if own is not None:
        return {own.name: own}
    return {f"workload-{n}": bench.pollux_trace(n, models, load=load) for n in numbers(bench, load)}


def scenario(
    bench: Bench,
    workload: Workload,
    contender: str = POLLUX,
    *,
    parameters: Mapping[str, object] | None = None,
    round_seconds: float | None = None,
    **conditions: Any,
) -> Scenario:
    """Return a simulation under a contender by the published rules; `conditions`: what differs."""
    of = CONTENDERS[contender]
    known: dict[str, Any] = {"fidelity": rules()}
    if of.policy != "pollux" and not of.load and not published(bench):
        known["tuned"] = TunedJobs(TuningRule.ANY_PAIR, 64)  # published workloads are tuned
    return Scenario(
        workload,
        bench.sia_models(),
        Cluster.parse(CLUSTER),
        policy=of.policy,
        placer=suiting_placer(of.policy),
        policy_parameters={**of.parameters, **(parameters or {})},
        conditions=replace(Conditions(), **{**known, **conditions}),
        round_seconds=round_seconds,
    )


def published(bench: Bench) -> bool:
    """Return whether there are published workloads, whose jobs are tuned."""
    if bench.data.own_of(MeasurementKind.TRACE) is not None:
        return False
    return any(bench.data.has("pollux trace {}", f"workloads/workload-{n}") for n in range(1, 9))


def compared(bench: Bench, names: Iterable[str]) -> dict[Label, Run]:
    """Return the runs of table 2 for some contenders, which several items share.

    Of the first workload, series over time are kept.
    """
    runs: dict[Label, Run] = {}
    for name in names:
        load = CONTENDERS[name].load
        for index, (trace, workload) in enumerate(traces(bench, load).items()):
            series = index == 0 and name in THREE
            runs[name, trace] = WithRho(scenario(bench, workload, name), series=series)
    return runs


def each(outcomes: Outcomes, figure: str, *label: str) -> list[float]:
    """Return a figure of all runs whose label begins so."""
    return [run.figures[figure] for run in of(outcomes, *label) if figure in run.figures]


def of(outcomes: Outcomes, *label: str) -> list[Observation]:
    """Return the observations of all runs whose label begins so: of each trace."""
    return [run for key, run in outcomes.items() if key[: len(label)] == label]


def shorter(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Return by how many percent ours are below theirs, trace by trace."""
    return [100 * (1 - a / b) for a, b in zip(ours, theirs, strict=True)]
