"""`maat clusters`, and the commands that create, pause and resume one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maat.cli.numbers import number_option
from maat.cli.service import DEFAULT_URL, AsJson, Url, client_of, show, table_of
from maat.cli.stay_options import LeastStay, MostMoves
from maat.library.durations import bounds_of
from maat.scheduling.errors import ParameterError
from maat.vocabulary import (
    LEAST_ROUND_SECONDS,
    MAX_LIVE_JOBS_PER_GPU,
    MOST_ROUND_SECONDS,
    ExecutorKind,
)

JobsPerGpu = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=MAX_LIVE_JOBS_PER_GPU,
        help="How many jobs may share a GPU: 1, or 2 for policies that share.",
    ),
]

if TYPE_CHECKING:
    from maat.api.clusters import ClusterOut

PlacerOption = Annotated[
    str | None, typer.Option(help="Its placer; default: the one that suits the policy.")
]

Interference = Annotated[
    str | None,
    typer.Option(
        help="Slowdown of jobs on one GPU: 'synthetic', a number such as 1.25, or the name of "
        "uploaded measurements."
    ),
]


def clusters(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List clusters with their policy."""
    with client_of(url) as maat:
        found = maat.clusters()
    columns = (
        "id",
        "name",
        "executor",
        "policy",
        "placer",
        "node_count",
        "gpu_count",
        "round_seconds",
        "jobs_per_gpu",
        "speed",
        "paused",
        "fault",
    )
    cells = ([cluster.get(column) for column in columns] for cluster in found)
    rows = [["" if cell is None else str(cell) for cell in row] for row in cells]
    show(found, as_json, table_of(columns, rows))


def create_cluster(
    name: Annotated[str, typer.Argument(help="Its name.")],
    shape: Annotated[
        str | None,
        typer.Option(
            help="Nodes by GPU type, such as t4=6x4,a100=2x8. With slurm none; with local slots "
            "that are no GPUs, or none for the GPUs of this machine."
        ),
    ] = None,
    executor: Annotated[
        ExecutorKind, typer.Option(help="What runs its jobs.")
    ] = ExecutorKind.SIMULATED,
    executor_parameter: Annotated[
        list[str] | None,
        typer.Option(help="For slurm, such as shared_dir=/shared/maat or partition=gpu."),
    ] = None,
    policy: Annotated[str | None, typer.Option(help="Its policy; default: sia.")] = None,
    placer: PlacerOption = None,
    round_seconds: Annotated[
        float | None,
        number_option(
            "--round-seconds",
            least=LEAST_ROUND_SECONDS,
            most=MOST_ROUND_SECONDS,
            help="Time between two rounds; default: the policy's own.",
        ),
    ] = None,
    jobs_per_gpu: JobsPerGpu = None,
    interference: Interference = None,
    least_stay_seconds: LeastStay = None,
    most_moves_per_hour: MostMoves = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Create a cluster. Its time begins now."""
    given = {
        "shape": shape,
        "policy": policy,
        "placer": placer,
        "executor": executor.value,
        "round_seconds": round_seconds,
        "jobs_per_gpu": jobs_per_gpu,
        "interference": number_or_name(interference),
    }
    body: dict[str, Any] = {"name": name, **{k: v for k, v in given.items() if v is not None}}
    body |= bounds_of(least_stay_seconds, most_moves_per_hour)
    if executor_parameter and executor is not ExecutorKind.SLURM:
        raise ParameterError(
            f"is of the executor slurm, and this is {executor.value}",
            field="--executor-parameter",
            value=executor_parameter[0],
            remedy="Leave it out, or give --executor slurm.",
        )
    if executor_parameter:
        body["executor_parameters"] = _parameters(executor_parameter)
    with client_of(url) as maat:
        made = maat.create_cluster(body)
    show(made, as_json, created_lines(made))


def created_lines(made: ClusterOut) -> str:
    """Say that a cluster is created, by what it decides and places, and what it lacks."""
    created = f"{made['id']}  {made['name']} is created: {made['policy']} with {made['placer']}"
    return "\n".join([created, *made["notes"]])


def number_or_name(given: str | None) -> str | float | None:
    """Return a slowdown as a number, and anything else as it is."""
    try:
        return None if given is None else float(given)
    except ValueError:
        return given


def _parameters(given: Sequence[str]) -> dict[str, object]:
    """Return NAME=VALUE as a dictionary: what reads as a number is one."""
    found: dict[str, object] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not (name and equals):
            raise ParameterError(
                "is no NAME=VALUE",
                field="executor_parameter",
                value=each,
                remedy="Write for example --executor-parameter partition=gpu.",
            )
        found[name] = _number_or_text(value) if name in _NUMBERS else value
    return found


_NUMBERS = {"cpus_per_gpu", "memory_gib_per_gpu"}  # all others are text, whatever they look like


def _number_or_text(value: str) -> object:
    try:
        number = json.loads(value)
    except ValueError:
        return value
    return number if isinstance(number, int | float) else value


def pause_cluster(
    cluster: Annotated[str, typer.Argument(help="Its id or name.")],
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Stop a cluster's time: no rounds and no progress until it is resumed."""
    _act(cluster, "pause", "is paused", url, as_json)


def resume_cluster(
    cluster: Annotated[str, typer.Argument(help="Its id or name.")],
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Let the time of a paused cluster go on."""
    _act(cluster, "resume", "goes on", url, as_json)


def _act(cluster: str, action: str, told: str, url: str, as_json: bool) -> None:
    with client_of(url) as maat:
        changed = maat.act_on_cluster(cluster, action)
    show(changed, as_json, f"{changed['name']} {told}")
