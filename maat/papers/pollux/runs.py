"""The simulations of Pollux's evaluation: cluster, policies, workloads, one scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from maat.papers.bench import Bench, Size
from maat.papers.items import Outcomes
from maat.scheduling.cluster import Cluster
from maat.scheduling.policies import suiting_placer
from maat.simulation.conditions import Conditions
from maat.simulation.fidelity import Fidelity, fidelity
from maat.simulation.scenario import Scenario
from maat.simulation.tuned_jobs import TunedJobs
from maat.vocabulary import TuningRule
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
    """Return the workloads at hand, by name."""
    models = bench.sia_models()
    return {f"workload-{n}": bench.pollux_trace(n, models, load=load) for n in numbers(bench, load)}
