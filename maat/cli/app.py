"""All commands together, and the one place where an error becomes a message and an exit code."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from maat import __version__
from maat.cli.autoscale import autoscale_command
from maat.cli.compare import compare_command
from maat.cli.live import cancel, clusters, demo, jobs, reservations, reserve, submit, unreserve
from maat.cli.simulate import simulate_command
from maat.cli.sweep import sweep_command
from maat.cli.tune import tune_command
from maat.scheduling.errors import InputError, MaatError

app = typer.Typer(
    name="maat",
    help="Maat schedules deep-learning training jobs on GPU clusters of mixed types.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

app.command("simulate")(simulate_command)
app.command("compare")(compare_command)
app.command("sweep")(sweep_command)
app.command("autoscale")(autoscale_command)
app.command("tune")(tune_command)
app.command("submit")(submit)
app.command("jobs")(jobs)
app.command("cancel")(cancel)
app.command("clusters")(clusters)
app.command("reserve")(reserve)
app.command("reservations")(reservations)
app.command("unreserve")(unreserve)
app.command("demo")(demo)


@app.command("up")
def up_command(
    host: Annotated[str, typer.Option(help="Address to listen on. Only loopback addresses need no token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="First port to try.")] = 8000,
    data_dir: Annotated[Path, typer.Option(help="Folder of the database, the queue and the logs.")] = Path("var"),
    demo_cluster: Annotated[bool, typer.Option("--demo/--no-demo", help="Make a demo cluster of 64 mixed GPUs on first start.")] = True,
) -> None:
    """Start the whole service on this machine: API, pages, worker. Needs no database server and no broker."""
    from maat.cli.up import up

    raise typer.Exit(up(host, port, data_dir, demo_cluster))


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
        lines = [str(failed), *(f"  {field}: {sentence}" for field, sentence in failed.by_field.items())]
        _end("\n".join(lines), 2 if failed.status < 500 else 1)
    if isinstance(failed, Unreachable):
        _end(f"{failed}\nIs Maat running? Start it with `maat up`, or name its address with --url.", 1)


def _end(message: str, code: int) -> None:
    typer.echo(f"maat: {message}", err=True)
    sys.exit(code)
