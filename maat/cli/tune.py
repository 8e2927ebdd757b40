"""`maat tune`: a hyper-parameter search with elastic and with static allocation.

Prints a table or JSON.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from maat.cli.condition_options import FidelityName
from maat.cli.numbers import number_option, whole_option
from maat.cli.output import print_json, print_table, say
from maat.cli.policy_options import named_policy
from maat.laboratory.tuning import SCORES, TreeParzen, Tuned, Tuning, tune
from maat.scheduling.cluster import Cluster
from maat.scheduling.policies import suiting_placer
from maat.simulation.fidelity import fidelity
from maat.simulation.world_models import named_model
from maat.vocabulary import MAX_GPUS
from maat.workloads.generators import MAX_SEED

ModelName = Annotated[str, typer.Option("--model", help="Model to train in every trial.")]
Shape = Annotated[str, typer.Option(help="GPU types and nodes: type=NODESxGPUS,...")]
Profiles = Annotated[
    Path | None,
    typer.Option(help="Folder of measured profiles; without it, the catalog's fitted models."),
]
Trials = Annotated[
    int, whole_option("--trials", least=1, most=10_000, help="Total number of trials.")
]
AtATime = Annotated[
    int, whole_option("--at-a-time", least=1, most=1_000, help="Trials that run at a time.")
]
StaticGpus = Annotated[
    int,
    whole_option(
        "--static-gpus", least=1, most=MAX_GPUS, help="GPUs of every trial in the static search."
    ),
]
Policy = Annotated[str, typer.Option(help="Policy of the elastic search.")]
WorkScale = Annotated[
    float,
    number_option(
        "--work-scale", help="How long a trial trains, in standard trainings of the model."
    ),
]
Seed = Annotated[
    int, whole_option("--seed", least=0, most=MAX_SEED, help="Seed of all random choices.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object, not rounded.")]


def tune_command(
    model: ModelName = "cifar10",
    cluster: Shape = "a100=2x8",
    profiles: Profiles = None,
    fidelity_name: FidelityName = "pollux-artifact",
    trials: Trials = 100,
    at_a_time: AtATime = 4,
    static_gpus: StaticGpus = 4,
    work_scale: WorkScale = 1.0,
    policy: Policy = "pollux",
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Search hyper-parameters of one model on elastic and on static GPUs.

    Every completion starts the next trial (Pollux section 5.4.2). The scores are a declared
    formula; the times are simulated.
    """
    elastic = Tuning(
        named_model(model, profiles),
        Cluster.parse(cluster),
        fidelity(fidelity_name),
        policy=named_policy(policy),
        trials=trials,
        at_a_time=at_a_time,
        work_scale=work_scale,
        seed=seed,
    )
    static = replace(elastic, policy="fifo", static_gpus=static_gpus)
    found = {
        "elastic": tune(elastic, TreeParzen(seed=seed)),
        "static": tune(static, TreeParzen(seed=seed)),
    }
    if as_json:
        print_json({"scores": SCORES, **{name: _figures(tuned) for name, tuned in found.items()}})
    else:
        _print_table(found)


def _figures(tuned: Tuned) -> dict[str, float | str | int]:
    return {
        "policy": tuned.policy,
        "placer": suiting_placer(tuned.policy),
        "trials": len(tuned.records),
        "top_5_score": tuned.top_score(),
        "average_jct_seconds": tuned.average_jct_seconds,
        "makespan_seconds": tuned.makespan_seconds,
    }


def _print_table(found: dict[str, Tuned]) -> None:
    rows = []
    for name, tuned in found.items():
        jct, makespan = tuned.average_jct_seconds / 60, tuned.makespan_seconds / 3600
        who = f"{tuned.policy} + {suiting_placer(tuned.policy)}"
        rows.append(
            (
                name,
                who,
                str(len(tuned.records)),
                f"{tuned.top_score():.2f}",
                f"{jct:.1f}",
                f"{makespan:.2f}",
            )
        )
    print_table(
        ("Search", "Policy + placer"),
        ("Trials", "Score of the best 5", "Average JCT, min", "Makespan, h"),
        rows,
    )
    say(f"Scores are {SCORES}; times are simulated.")
