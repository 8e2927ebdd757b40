"""`maat autoscale`: one training, or a workload, on rented nodes, as a table or JSON.

Compares the goodput-based with the throughput-based autoscaler.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from maat.cli.condition_options import FidelityName
from maat.cli.numbers import number_option, whole_option
from maat.cli.output import print_json, print_table, say
from maat.laboratory.rented import Rented, Training, rent, train
from maat.laboratory.setup import Setup
from maat.library.inputs import read_models, read_trace
from maat.scheduling.autoscaling import Autoscaler, GoodputAutoscaler, ThroughputAutoscaler
from maat.scheduling.cluster import Cluster
from maat.scheduling.parameters import build
from maat.simulation.conditions import Conditions
from maat.simulation.fidelity import Fidelity, fidelity
from maat.simulation.scenario import Scenario
from maat.simulation.world_models import named_model

ModelName = Annotated[str, typer.Option("--model", help="Model to train.")]
Nodes = Annotated[str, typer.Option(help="All nodes to rent from, of one kind: type=NODESxGPUS.")]
Profiles = Annotated[
    Path | None,
    typer.Option(help="Folder of measured profiles; without it, the catalog's fitted models."),
]
Upper = Annotated[
    float, number_option("--upper", help="U: share of the ideal above which nodes are added, 0-1.")
]
Lower = Annotated[
    float, number_option("--lower", help="L: share of the ideal down to which they are added, 0-1.")
]
Window = Annotated[
    int,
    whole_option(
        "--window", least=1, most=1440, help="Decisions over which the share is averaged."
    ),
]
GiveBack = Annotated[
    float,
    number_option(
        "--give-back-below",
        help="Share of ideal goodput below which nodes are given back, 0-1; 0: never.",
    ),
]
TraceOption = Annotated[
    Path | None,
    typer.Option("--trace", help="Workload to play on the rented nodes, instead of one model."),
]
PolicyOption = Annotated[
    str, typer.Option("--policy", help="What shares out the rented nodes among its jobs.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object, not rounded.")]


def autoscale_command(
    model: ModelName = "imagenet",
    cluster: Nodes = "t4=16x4",
    profiles: Profiles = None,
    fidelity_name: FidelityName = "paper",
    upper: Upper = 2 / 3,
    lower: Lower = 1 / 2,
    window: Window = 1,
    give_back_below: GiveBack = 0.0,
    trace: TraceOption = None,
    policy: PolicyOption = "pollux",
    as_json: AsJson = False,
) -> None:
    """Train a model, or a workload, on rented nodes under two autoscalers; compare cost, time.

    One chooses the number of nodes by goodput, the other by throughput (Pollux section 5.4.1).
    """
    limits = {"upper": upper, "lower": lower}
    averaged = {**limits, "window": window, "give_back_below": give_back_below}
    rivals: tuple[Autoscaler, Autoscaler] = (
        build(GoodputAutoscaler, averaged, owner="autoscale"),
        build(ThroughputAutoscaler, limits, owner="autoscale"),
    )
    nodes, rules = Cluster.parse(cluster), fidelity(fidelity_name)
    if trace is None:
        training = Training(named_model(model, profiles), nodes, rules)
        by_goodput, by_throughput = (train(training, rival) for rival in rivals)
    else:
        scenario = _workload(trace, profiles, nodes, policy=policy, rules=rules)
        by_goodput, by_throughput = (rent(scenario, rival) for rival in rivals)
    if as_json:
        runs = [asdict(run) for run in (by_goodput, by_throughput)]
        print_json({"runs": runs, **_difference(by_goodput, by_throughput)})
    else:
        _print_table(by_goodput, by_throughput)


def _workload(
    trace: Path, profiles: Path | None, nodes: Cluster, *, policy: str, rules: Fidelity
) -> Scenario:
    models = read_models(profiles, nodes)
    return Setup(
        read_trace(trace, models), models, nodes, policy, conditions=Conditions(fidelity=rules)
    ).scenario()


def _difference(ours: Rented, theirs: Rented) -> dict[str, float]:
    """Return the relative difference of goodput-based over throughput-based."""
    return {
        "cost": ours.node_seconds / theirs.node_seconds - 1,
        "completion_time": ours.seconds / theirs.seconds - 1,
    }


def _print_table(ours: Rented, theirs: Rented) -> None:
    rows = []
    for run in (ours, theirs):
        steps = ", ".join(f"{nodes} from {time / 3600:.1f}" for time, nodes in run.rented)
        hours = f"{run.node_seconds / 3600:.1f}", f"{run.seconds / 3600:.2f}"
        rows.append((run.autoscaler, steps, *hours, f"{run.efficiency:.2f}", str(run.restarts)))
    print_table(
        ("Autoscaler", "Nodes from hour on"),
        ("Node-hours", "Hours", "Efficiency", "Restarts"),
        rows,
    )
    jct = (f"{run.avg_jct_seconds / 3600:.2f} h" for run in (ours, theirs))
    say("Average JCT: " + ", ".join(jct))
    if ours.unfinished or theirs.unfinished:
        say(f"Jobs not finished: {ours.unfinished}, {theirs.unfinished}")
    difference = _difference(ours, theirs)
    say(
        f"By goodput rather than throughput: cost {difference['cost']:+.1%}, "
        f"completion time {difference['completion_time']:+.1%}"
    )
