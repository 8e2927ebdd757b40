"""All commands together, and the one place where an error becomes a message and an exit code."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from maat import __version__
from maat.cli import token
from maat.cli.lazy_commands import Command, add_when_used
from maat.cli.numbers import whole_option
from maat.scheduling.errors import InputError, MaatError

COMMANDS = (
    Command(
        "simulate",
        "Play a workload through under one or more policies and print how the jobs fared.",
        "maat.cli.simulate:simulate_command",
    ),
    Command(
        "compare",
        "Run every policy with every placer on every trace and seed, and say what differs and how sure that is.",
        "maat.cli.compare:compare_command",
    ),
    Command(
        "sweep",
        "Vary one or two settings of a simulation and print how the figures move, with their spread over the seeds.",
        "maat.cli.sweep:sweep_command",
    ),
    Command(
        "autoscale",
        "Train one model on rented nodes, their number chosen by goodput and by throughput (Pollux section 5.4.1); compare cost and time.",
        "maat.cli.autoscale:autoscale_command",
    ),
    Command(
        "tune",
        "Search hyper-parameters of one model (Pollux section 5.4.2): every completion brings the next trial; elastic against static GPUs.",
        "maat.cli.tune:tune_command",
    ),
    Command("submit", "Submit a job to a running Maat.", "maat.cli.live:submit"),
    Command("jobs", "List jobs, newest first.", "maat.cli.live:jobs"),
    Command(
        "explain",
        "Say why a job has what it has, and what its owner could ask for instead.",
        "maat.cli.live:explain",
    ),
    Command("cancel", "Cancel a job. What it has trained so far is lost.", "maat.cli.live:cancel"),
    Command("clusters", "List clusters with their policy.", "maat.cli.live:clusters"),
    Command(
        "reserve",
        "Reserve GPUs of a running cluster for a tenant or a job.",
        "maat.cli.live:reserve",
    ),
    Command("reservations", "List the reservations of a cluster.", "maat.cli.live:reservations"),
    Command(
        "unreserve",
        "Remove a reservation: from the next round on its GPUs are anybody's.",
        "maat.cli.live:unreserve",
    ),
    Command(
        "measurements", "List uploaded measurements, newest first.", "maat.cli.live:measurements"
    ),
    Command(
        "upload-measurement",
        "Upload measurements of unequal GPUs or of interference, which simulations then name.",
        "maat.cli.live:upload_measurement",
    ),
    Command(
        "delete-measurement",
        "Delete uploaded measurements. What was asked for with them keeps them.",
        "maat.cli.live:delete_measurement",
    ),
    Command("demo", "Add demo jobs to the first cluster.", "maat.cli.live:demo"),
)

app = typer.Typer(
    name="maat",
    help="Maat schedules deep-learning training jobs on GPU clusters of mixed types.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
for command in COMMANDS:
    add_when_used(app, command)
app.add_typer(token.app, name="token")


@app.command("up")
def up_command(
    host: Annotated[
        str, typer.Option(help="Address to listen on. Only loopback addresses need no token.")
    ] = "127.0.0.1",
    port: Annotated[
        int, whole_option("--port", least=1, most=65535, help="First port to try.")
    ] = 8000,
    data_dir: Annotated[
        Path, typer.Option(help="Folder of the database, the queue and the logs.")
    ] = Path("var"),
    demo_cluster: Annotated[
        bool,
        typer.Option(
            "--demo/--no-demo", help="Make a demo cluster of 64 mixed GPUs on first start."
        ),
    ] = True,
    demo_jobs: Annotated[
        bool,
        typer.Option(
            "--demo-jobs/--no-demo-jobs",
            help="Let several tenants' jobs arrive on it, after a day of history.",
        ),
    ] = True,
) -> None:
    """Start the whole service on this machine: API, pages, worker. Needs no database server and no broker."""
    from maat.cli.up import up

    raise typer.Exit(up(host, port, data_dir, demo_cluster, demo_jobs))


@app.command("version")
def version() -> None:
    """Print the version."""
    typer.echo(__version__)


def run() -> None:
    """The command line's entry: bad input ends with its message and exit code 2, never with a traceback."""
    try:
        app()
    except InputError as bad:
        _end(str(bad), 2)
    except MaatError as failed:
        _end(str(failed), 1)
    except Exception as failed:
        _end_call(failed)
        raise


def _end_call(failed: Exception) -> None:
    """End with what a call of the service failed with, if that is what happened."""
    from maat.client import ApiError, Unreachable

    if isinstance(failed, ApiError):
        lines = [
            str(failed),
            *(f"  {field}: {sentence}" for field, sentence in failed.by_field.items()),
        ]
        _end("\n".join(lines), 2 if failed.status < 500 else 1)
    if isinstance(failed, Unreachable):
        _end(
            f"{failed}\nIs Maat running? Start it with `maat up`, or name its address with --url.",
            1,
        )


def _end(message: str, code: int) -> None:
    typer.echo(f"maat: {message}", err=True)
    sys.exit(code)
