"""`maat autoscale`: one training, or a workload, on rented nodes, as a table or JSON.

Compares the goodput-based with the throughput-based autoscaler, and with fixed numbers of nodes.
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
from maat.laboratory.rented import Rented
from maat.library.autoscaling import RENTED_NODES, Autoscaled, autoscale
from maat.library.experiment_plots import AutoscaledPlots
from maat.library.numbers import whole_number_reader
from maat.vocabulary import MAX_GPUS

ModelName = Annotated[
    str | None, typer.Option("--model", help="Model to train, default: imagenet.")
]
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
Fixed = Annotated[
    str | None,
    typer.Option(
        "--fixed-nodes",
        help="Numbers of nodes to compare with, such as 4,8,16; default: 1,2,4,... and all.",
    ),
]
TraceOption = Annotated[
    Path | None,
    typer.Option("--trace", help="Workload to play on the rented nodes, instead of one model."),
]
PolicyOption = Annotated[
    str, typer.Option("--policy", help="What shares out the rented nodes among its jobs.")
]
CsvFile = Annotated[Path | None, typer.Option("--csv", help="Write one line per run.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object, not rounded.")]


def autoscale_command(
    model: ModelName = None,
    cluster: Nodes = RENTED_NODES,
    profiles: Profiles = None,
    fidelity_name: FidelityName = "paper",
    upper: Upper = 2 / 3,
    lower: Lower = 1 / 2,
    window: Window = 1,
    give_back_below: GiveBack = 0.0,
    fixed_nodes: Fixed = None,
    trace: TraceOption = None,
    policy: PolicyOption = "pollux",
    seed: Seed = 0,
    plot_path: PlotFile = None,
    figure: Annotated[str | None, figure_option(AutoscaledPlots)] = None,
    csv_path: CsvFile = None,
    as_json: AsJson = False,
) -> None:
    """Train a model, or a workload, on rented nodes under two autoscalers; compare cost, time.

    One chooses the number of nodes by goodput, the other by throughput (Pollux section 5.4.1).
    Beside them stands what fixed numbers of nodes cost.
    """
    inputs = [path for path in (profiles, trace) if path is not None]
    check_outputs(AutoscaledPlots, csv=csv_path, plot=plot_path, figure=figure, inputs=inputs)
    found = autoscale(
        "imagenet" if model is None and trace is None else model,
        trace=trace,
        cluster=cluster,
        profiles=profiles,
        fidelity=fidelity_name,
        upper=upper,
        lower=lower,
        window=window,
        give_back_below=give_back_below,
        fixed_nodes=None if fixed_nodes is None else read_sizes(fixed_nodes),
        policy=policy,
        seed=seed,
        progress=not as_json,
    )
    write_plot(plot_path, figure, found.plot)
    if csv_path is not None:
        write_table(csv_path, found.runs)
    if as_json:
        print_json(found.to_dict())
    else:
        _print_table(found)


def read_sizes(text: str) -> list[int]:
    """Return numbers with commas between. Raises ParameterError."""
    read = whole_number_reader("fixed_nodes", least=1, most=MAX_GPUS)
    return [read(part.strip()) for part in text.split(",") if part.strip()]


def _print_table(found: Autoscaled) -> None:
    rows = [
        (found.plan.title_of(name), _steps(run), *_numbers(run))
        for name, run in found.rented.items()
    ]
    print_table(
        ("Nodes chosen", "Nodes from hour on"),
        ("Node-hours", "Hours", "Average JCT, h", "Efficiency", "Restarts"),
        rows,
    )
    unfinished = {name: run.unfinished for name, run in found.rented.items() if run.unfinished}
    if unfinished:
        say(
            "Jobs not finished: "
            + ", ".join(f"{found.plan.title_of(name)} {jobs}" for name, jobs in unfinished.items())
        )
    cost, time = (found.differences[name] for name in ("cost", "completion_time"))
    if cost is not None and time is not None:
        say(f"By goodput rather than throughput: cost {cost:+.1%}, completion time {time:+.1%}")


def _steps(run: Rented) -> str:
    """Return the changes of the nodes; of several at one moment, the last."""
    last = dict(run.rented)
    return ", ".join(f"{nodes} from {time / 3600:.1f}" for time, nodes in last.items())


def _numbers(run: Rented) -> tuple[str, ...]:
    return (
        f"{run.node_seconds / 3600:.1f}",
        f"{run.seconds / 3600:.2f}",
        f"{run.avg_jct_seconds / 3600:.2f}",
        f"{run.efficiency:.2f}",
        str(run.restarts),
    )
