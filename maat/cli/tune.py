"""`maat tune`: a hyper-parameter search with elastic and with static allocation, as a table or JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import UnknownNameError
from maat.simulation.fidelity import fidelity
from maat.simulation.models import catalog_models, measured_models
from maat.simulation.tuning import TreeParzen, Tuned, Tuning, tune

ModelName = Annotated[str, typer.Option("--model", help="What is trained in every trial.")]
Shape = Annotated[str, typer.Option(help="GPU types and nodes: type=NODESxGPUS,...")]
Profiles = Annotated[Path | None, typer.Option(help="Folder of measured profiles; without it, the catalog's fitted models.")]
Trials = Annotated[int, typer.Option(min=1, max=10000, help="Trials in all.")]
AtATime = Annotated[int, typer.Option("--at-a-time", min=1, max=1000, help="Trials that run together.")]
StaticGpus = Annotated[int, typer.Option("--static-gpus", min=1, help="GPUs of every trial in the static search.")]
Policy = Annotated[str, typer.Option(help="Policy of the elastic search.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of whatever is left to chance.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object, not rounded.")]


def tune_command(
    model: ModelName = "cifar10",
    cluster: Shape = "a100=2x8",
    profiles: Profiles = None,
    fidelity_name: Annotated[str, typer.Option("--fidelity", help="Preset of modelling switches.")] = "pollux-artifact",
    trials: Trials = 100,
    at_a_time: AtATime = 4,
    static_gpus: StaticGpus = 4,
    policy: Policy = "pollux",
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Search hyper-parameters of one model (Pollux section 5.4.2): every completion brings the next trial; elastic against static GPUs.

    The scores are a declared formula; the times are simulated.
    """
    models = measured_models(profiles) if profiles is not None else catalog_models()
    if model not in models:
        raise UnknownNameError("is no known model", field="model", value=model, remedy=f"Use one of: {', '.join(sorted(models))}.")
    elastic = Tuning(
        models[model], Cluster.parse(cluster), fidelity(fidelity_name), policy=policy, trials=trials, at_a_time=at_a_time, seed=seed
    )
    static = replace(elastic, policy="fifo", static_gpus=static_gpus)
    found = {"elastic": tune(elastic, TreeParzen(seed=seed)), "static": tune(static, TreeParzen(seed=seed))}
    if as_json:
        typer.echo(json.dumps({name: _figures(tuned) for name, tuned in found.items()}, indent=2))
    else:
        _print_table(found)


def _figures(tuned: Tuned) -> dict[str, float | str | int]:
    return {
        "policy": tuned.policy,
        "trials": len(tuned.records),
        "top_5_score": tuned.top_score(),
        "average_jct_seconds": tuned.average_jct_seconds,
        "makespan_seconds": tuned.makespan_seconds,
    }


def _print_table(found: dict[str, Tuned]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table()
    for heading in ("", "Policy", "Trials", "Score of the best 5", "Average JCT, min", "Makespan, h"):
        table.add_column(heading, justify="left" if heading in ("", "Policy") else "right")
    for name, tuned in found.items():
        jct, makespan = tuned.average_jct_seconds / 60, tuned.makespan_seconds / 3600
        table.add_row(name, tuned.policy, str(len(tuned.records)), f"{tuned.top_score():.2f}", f"{jct:.1f}", f"{makespan:.2f}")
    Console().print(table)
