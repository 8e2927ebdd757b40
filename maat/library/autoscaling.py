"""`maat.autoscale`: a training, or a workload, on nodes that are rented as they are worth it."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from maat.laboratory.experiments import (
    BY_GOODPUT,
    BY_THROUGHPUT,
    Autoscaling,
    Thresholds,
    autoscalers_of,
    check_one_given,
    check_policy_is_used,
)
from maat.laboratory.rented import Rented, Training
from maat.laboratory.setup import Setup
from maat.library.experiment_plots import AutoscaledPlots
from maat.library.inputs import (
    GivenTraces,
    Profiles,
    read_cluster,
    read_models,
    read_trace,
    seed_of,
)
from maat.library.playing import play_all
from maat.library.policies import GivenPolicy, read_placer, read_policy
from maat.library.tables import Table
from maat.scheduling.cluster import Cluster
from maat.simulation.conditions import Conditions
from maat.simulation.fidelity import Fidelity
from maat.simulation.fidelity import fidelity as named_fidelity
from maat.simulation.scenario import Scenario
from maat.simulation.world_models import named_model

RENTED_NODES = "t4=16x4"
"""The nodes of Pollux section 5.4.1."""


def autoscale(
    model: str | None = None,
    *,
    trace: GivenTraces | None = None,
    cluster: str | Cluster = RENTED_NODES,
    profiles: str | Path | Profiles | None = None,
    fidelity: str = "paper",
    upper: float = 2 / 3,
    lower: float = 1 / 2,
    window: int = 1,
    give_back_below: float = 0.0,
    fixed_nodes: Sequence[int] | None = None,
    policy: GivenPolicy = "pollux",
    seed: int = 0,
    progress: bool = True,
) -> Autoscaled:
    """Train a model, or play a workload, on rented nodes; compare cost and time.

    One autoscaler chooses the number of nodes by goodput, another by throughput; beside them, what
    fixed numbers of nodes cost (Pollux section 5.4.1). Raises InputError, which names the argument,
    its value and a remedy.

    Args:
        model: Its name; give it or a trace.
        trace: A workload, as `maat.simulate` takes it, instead of one model.
        cluster: All nodes that may be rented, of one kind: `type=NODESxGPUS`.
        profiles: Folder of measured profiles, or `maat.profiles(folder)`; None: the catalog.
        fidelity: Preset of the rules where paper and published code differ.
        upper: Share of ideal speed above which nodes are added, 0-1.
        lower: Share of ideal speed down to which they are added, 0-1.
        window: Decisions over which the share of goodput is averaged.
        give_back_below: Share of ideal goodput below which nodes are given back, 0-1; 0: never.
        fixed_nodes: Numbers of nodes to compare with; None: 1, 2, 4, ... and all.
        policy: What shares out the rented nodes among the jobs of a trace.
        seed: Of all random choices of a trace.
        progress: Whether to show a progress bar, on a terminal or in a notebook.

    >>> import maat
    >>> found = maat.autoscale("cifar10", cluster="t4=4x4", fixed_nodes=[1, 4])
    >>> found.runs["run"]
    ['by goodput', 'by throughput', '1 node', '4 nodes']
    >>> min(found.runs["node_hours"]) == found.runs["node_hours"][2]
    True
    """
    nodes, rules = read_cluster(cluster, None), named_fidelity(fidelity)
    models = None if profiles is None else read_models(profiles, nodes)
    check_one_given(model, trace)
    check_policy_is_used(policy, trace)
    thresholds = Thresholds(upper, lower, window, give_back_below)
    autoscalers = autoscalers_of(nodes, thresholds, fixed_nodes)
    trained = (
        Training(named_model(model or "", models), nodes, rules)
        if trace is None
        else _workload(
            trace, read_models(models, nodes), nodes, policy=policy, rules=rules, seed=seed_of(seed)
        )
    )
    plan = Autoscaling(trained, autoscalers)
    return Autoscaled(plan, play_all("autoscale", plan, quiet=not progress))


def _workload(
    trace: GivenTraces,
    models: Profiles,
    nodes: Cluster,
    *,
    policy: GivenPolicy,
    rules: Fidelity,
    seed: int,
) -> Scenario:
    chosen = read_policy(policy)
    return Setup(
        read_trace(trace, models),
        models,
        nodes,
        policy=chosen.name,
        placer=None if chosen.own is None else read_placer(None, chosen),
        policy_parameters=chosen.parameters,
        conditions=Conditions(fidelity=rules),
        seed=seed,
        round_seconds=chosen.round_seconds,
        own_policy=chosen.own,
    ).scenario()


@dataclass(frozen=True, eq=False, repr=False)
class Autoscaled:
    """What was rented: a table of runs, and of nodes and efficiency over time.

    In a notebook it shows the runs.

    >>> import maat
    >>> found = maat.autoscale("cifar10", cluster="t4=2x4", fixed_nodes=[])
    >>> found
    cifar10 on t4=2x4: by goodput, by throughput
    >>> found.runs["unfinished"], sorted(found.to_dict())
    ([0, 0], ['completion_time', 'cost', 'runs'])
    >>> found.nodes.columns, found.efficiency.columns
    (('run', 'time_seconds', 'nodes'), ('run', 'time_seconds', 'efficiency'))
    >>> found.plot.nodes_over_time().layout.yaxis.title.text
    'Nodes rented'
    >>> found.differences["cost"] < 0
    True
    """

    plan: Autoscaling
    rented: Mapping[str, Rented]

    @cached_property
    def runs(self) -> Table:
        """One row per run: its cost in node-hours, its hours, mean efficiency and restarts.

        `avg_jct_hours`: of the jobs that finished. `nodes`: their number, if it was fixed.
        """
        return Table(
            {
                "run": str,
                "nodes": int,
                "node_hours": float,
                "hours": float,
                "efficiency": float,
                "restarts": int,
                "avg_jct_hours": float,
                "unfinished": int,
            },
            [
                (
                    self.plan.title_of(name),
                    self.plan.fixed_nodes_of(name),
                    run.node_seconds / 3600,
                    run.seconds / 3600,
                    run.efficiency,
                    run.restarts,
                    run.avg_jct_seconds / 3600,
                    run.unfinished,
                )
                for name, run in self.rented.items()
            ],
        )

    @cached_property
    def nodes(self) -> Table:
        """Nodes rented from `time_seconds` to the next row's of a run, the last to its end."""
        return self._over_time("nodes", int, lambda run: run.rented)

    @cached_property
    def efficiency(self) -> Table:
        """Mean statistical efficiency of the jobs that train (Pollux eq. 6), likewise.

        None while none does.
        """
        return self._over_time("efficiency", float, lambda run: run.efficiencies)

    def _over_time(self, column: str, kind: Any, points: Any) -> Table:
        return Table(
            {"run": str, "time_seconds": float, column: kind},
            [
                (self.plan.title_of(name), time, value)
                for name, run in self.rented.items()
                for time, value in points(run)
            ],
        )

    @property
    def differences(self) -> Mapping[str, float | None]:
        """Cost and completion time by goodput over those by throughput, less one.

        None if no job has finished.
        """
        return self.rented[BY_GOODPUT].over(self.rented[BY_THROUGHPUT])

    @property
    def plot(self) -> AutoscaledPlots:
        """The figures: `found.plot.nodes_over_time()`, `found.plot.cost_against_time()`."""
        return AutoscaledPlots(self)

    def to_dict(self) -> dict[str, Any]:
        """Return what `maat autoscale --json` prints: every run, and the differences."""
        return {"runs": [asdict(run) for run in self.rented.values()], **self.differences}

    def __repr__(self) -> str:
        runs = ", ".join(map(self.plan.title_of, self.plan.runs))
        return f"{self.plan.trained_name} on {self.plan.trained.cluster.describe()}: {runs}"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self))}</p>{self.runs.as_html()}"
