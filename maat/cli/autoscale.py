"""`maat autoscale`: one training on rented nodes, as a table or JSON.

Compares the goodput-based with the throughput-based autoscaler.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from maat.cli.condition_options import FidelityName
from maat.cli.numbers import number_option
from maat.cli.output import print_json, print_table, say
from maat.laboratory.rented import Rented, Training, train
from maat.scheduling.autoscaling import GoodputAutoscaler, ThroughputAutoscaler
from maat.scheduling.cluster import Cluster
from maat.scheduling.parameters import build
from maat.simulation.fidelity import fidelity
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
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object, not rounded.")]


def autoscale_command(
    model: ModelName = "imagenet",
    cluster: Nodes = "t4=16x4",
    profiles: Profiles = None,
    fidelity_name: FidelityName = "paper",
    upper: Upper = 2 / 3,
    lower: Lower = 1 / 2,
    as_json: AsJson = False,
) -> None:
    """Train one model on rented nodes under two autoscalers; compare cost and time.

    One chooses the number of nodes by goodput, the other by throughput (Pollux section 5.4.1).
    """
    training = Training(
        named_model(model, profiles), Cluster.parse(cluster), fidelity(fidelity_name)
    )
    limits = {"upper": upper, "lower": lower}
    by_goodput = train(training, build(GoodputAutoscaler, limits, owner="autoscale"))
    by_throughput = train(training, build(ThroughputAutoscaler, limits, owner="autoscale"))
    if as_json:
        runs = [asdict(run) for run in (by_goodput, by_throughput)]
        print_json({"runs": runs, **_difference(by_goodput, by_throughput)})
    else:
        _print_table(by_goodput, by_throughput)


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
    difference = _difference(ours, theirs)
    say(
        f"By goodput rather than throughput: cost {difference['cost']:+.1%}, "
        f"completion time {difference['completion_time']:+.1%}"
    )
