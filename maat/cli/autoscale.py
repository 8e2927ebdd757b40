"""`maat autoscale`: one training on rented nodes under the goodput-based and the throughput-based autoscaler, as a table or JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from maat.scheduling.autoscaling import GoodputAutoscaler, ThroughputAutoscaler
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import UnknownNameError
from maat.scheduling.parameters import build
from maat.simulation.fidelity import fidelity
from maat.simulation.models import catalog_models, measured_models
from maat.simulation.rented import Rented, Training, train

ModelName = Annotated[str, typer.Option("--model", help="What is trained.")]
Nodes = Annotated[str, typer.Option(help="All nodes that may be rented, alike: type=NODESxGPUS.")]
Profiles = Annotated[Path | None, typer.Option(help="Folder of measured profiles; without it, the catalog's fitted models.")]
Upper = Annotated[float, typer.Option(help="U: share of the ideal above which nodes are added, 0-1.")]
Lower = Annotated[float, typer.Option(help="L: share of the ideal to which they are, 0-1.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object, not rounded.")]


def autoscale_command(
    model: ModelName = "imagenet",
    cluster: Nodes = "t4=16x4",
    profiles: Profiles = None,
    fidelity_name: Annotated[str, typer.Option("--fidelity", help="Preset of modelling switches.")] = "paper",
    upper: Upper = 2 / 3,
    lower: Lower = 1 / 2,
    as_json: AsJson = False,
) -> None:
    """Train one model on rented nodes, their number chosen by goodput and by throughput (Pollux section 5.4.1); compare cost and time."""
    models = measured_models(profiles) if profiles is not None else catalog_models()
    if model not in models:
        raise UnknownNameError("is no known model", field="model", value=model, remedy=f"Use one of: {', '.join(sorted(models))}.")
    training = Training(models[model], Cluster.parse(cluster), fidelity(fidelity_name))
    limits = {"upper": upper, "lower": lower}
    by_goodput = train(training, build(GoodputAutoscaler, limits, owner="autoscale"))
    by_throughput = train(training, build(ThroughputAutoscaler, limits, owner="autoscale"), largest_batch=True)
    if as_json:
        runs = [asdict(run) for run in (by_goodput, by_throughput)]
        typer.echo(json.dumps({"runs": runs, **_difference(by_goodput, by_throughput)}, indent=2))
    else:
        _print_table(by_goodput, by_throughput)


def _difference(ours: Rented, theirs: Rented) -> dict[str, float]:
    """Of goodput over throughput, less one."""
    return {"cost": ours.node_seconds / theirs.node_seconds - 1, "completion_time": ours.seconds / theirs.seconds - 1}


def _print_table(ours: Rented, theirs: Rented) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table()
    for heading in ("Autoscaler", "Node-hours", "Hours", "Efficiency", "Restarts", "Nodes from hour on"):
        table.add_column(heading, justify="left" if heading in ("Autoscaler", "Nodes from hour on") else "right")
    for run in (ours, theirs):
        steps = ", ".join(f"{nodes} from {time / 3600:.1f}" for time, nodes in run.rented)
        table.add_row(
            run.autoscaler, f"{run.node_seconds / 3600:.1f}", f"{run.seconds / 3600:.2f}", f"{run.efficiency:.2f}", str(run.restarts), steps
        )
    Console().print(table)
    difference = _difference(ours, theirs)
    typer.echo(f"By goodput rather than throughput: cost {difference['cost']:+.1%}, completion time {difference['completion_time']:+.1%}")
