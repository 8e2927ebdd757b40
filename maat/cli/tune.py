"""`maat tune`: a hyper-parameter search with elastic and with static allocation.

Prints a table or JSON.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maat.cli.condition_options import FidelityName
from maat.cli.numbers import number_option, whole_option
from maat.cli.output import print_json, print_table, say, write_table
from maat.cli.output_files import check_outputs
from maat.cli.plot_options import PlotFile, figure_option, write_plot
from maat.cli.run_options import Seed
from maat.figures.experiments import best_scores
from maat.laboratory.tuning import SCORES
from maat.library.experiment_plots import TunedPlots
from maat.library.tuning import SEARCH_CLUSTER, Tuned, tune
from maat.vocabulary import MAX_GPUS

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
StaticBatch = Annotated[
    int | None,
    whole_option(
        "--static-batch-per-gpu",
        least=1,
        most=1_000_000,
        help="Samples of a static trial's batch on each of its GPUs; default: 128, or as many as "
        "the model trains with.",
    ),
]
Policy = Annotated[str, typer.Option(help="Policy of the elastic search.")]
WorkScale = Annotated[
    float,
    number_option(
        "--work-scale", help="How long a trial trains, in standard trainings of the model."
    ),
]
CsvFile = Annotated[Path | None, typer.Option("--csv", help="Write one line per trial.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object, not rounded.")]


def tune_command(
    model: ModelName = "cifar10",
    cluster: Shape = SEARCH_CLUSTER,
    profiles: Profiles = None,
    fidelity_name: FidelityName = "pollux-artifact",
    trials: Trials = 100,
    at_a_time: AtATime = 4,
    static_gpus: StaticGpus = 4,
    static_batch_per_gpu: StaticBatch = None,
    work_scale: WorkScale = 1.0,
    policy: Policy = "pollux",
    seed: Seed = 0,
    plot_path: PlotFile = None,
    figure: Annotated[str | None, figure_option(TunedPlots)] = None,
    csv_path: CsvFile = None,
    as_json: AsJson = False,
) -> None:
    """Search hyper-parameters of one model on elastic and on static GPUs.

    Every completion starts the next trial (Pollux section 5.4.2). The scores are a declared
    formula; the times are simulated.
    """
    inputs = [] if profiles is None else [profiles]
    check_outputs(TunedPlots, csv=csv_path, plot=plot_path, figure=figure, inputs=inputs)
    found = tune(
        model,
        cluster=cluster,
        profiles=profiles,
        fidelity=fidelity_name,
        trials=trials,
        at_a_time=at_a_time,
        static_gpus=static_gpus,
        static_batch_per_gpu=static_batch_per_gpu,
        work_scale=work_scale,
        policy=policy,
        seed=seed,
        progress=not as_json,
    )
    write_plot(plot_path, figure, found.plot)
    if csv_path is not None:
        write_table(csv_path, found.trials)
    if as_json:
        print_json(found.to_dict())
    else:
        _print_table(found)


def _print_table(found: Tuned) -> None:
    rows = [
        (
            str(search["search"]),
            f"{search['policy']} + {search['placer']}",
            str(search["trials"]),
            f"{search['top_score']:.2f}",
            f"{search['avg_jct_minutes']:.1f}",
            f"{search['makespan_hours']:.2f}",
        )
        for search in found.searches
    ]
    print_table(
        ("Search", "Policy + placer"),
        ("Trials", best_scores(found.plan.elastic.trials), "Average JCT, min", "Makespan, h"),
        rows,
    )
    say(f"Scores are {SCORES}; times are simulated.")
