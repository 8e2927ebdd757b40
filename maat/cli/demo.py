"""`maat demo jobs` and `maat demo train`: something to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maat.cli.numbers import whole_option
from maat.cli.service import DEFAULT_URL, AsJson, Url, client_of, show
from maat.scheduling.errors import InputError
from maat.vocabulary import LARGEST_INTEGER

MAX_DEMO_JOBS, MAX_DEMO_SEED = 200, LARGEST_INTEGER  # the limits of the service


def jobs(
    count: Annotated[
        int, whole_option("--count", least=1, most=MAX_DEMO_JOBS, help="How many jobs.")
    ] = 10,
    seed: Annotated[
        int | None,
        whole_option(
            "--seed", least=0, most=MAX_DEMO_SEED, help="The same seed adds the same jobs."
        ),
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Add demo jobs to the first cluster.

    They are played, and train nothing.
    """
    with client_of(url) as maat:
        result = maat.add_demo_jobs(count=count, seed=seed)
    show(result, as_json, f"{count} demo jobs added")


def train(
    folder: Annotated[
        Path, typer.Option(help="A new folder for the run's data, its recording and its report.")
    ] = Path("var-demo"),
    port: Annotated[
        int, whole_option("--port", least=1, most=65535, help="First port to try for Maat.")
    ] = 8100,
    longer: Annotated[
        int, whole_option("--longer", least=1, most=20, help="How many times longer the jobs are.")
    ] = 1,
    outage: Annotated[bool, typer.Option(help="Let a node die for a while.")] = True,
) -> None:
    """Train three small models on eight emulated GPUs, lose a node, and write a report.

    Takes some six minutes on two cores, and needs PyTorch (pip install "maat\\[agent]").
    """
    from maat.cli.up import StopRequested, stop_on_signals
    from maat.demo.page import machine_in_words, verdict, write_page
    from maat.demo.recording import record
    from maat.demo.replay import compare
    from maat.demo.train import Conditions, play

    _make(folder)
    with stop_on_signals():
        try:
            recording = play(
                folder.resolve(), record, Conditions(longer, outage), port=port, say=typer.echo
            )
        except StopRequested:
            typer.echo("Stopped: nothing trains on.")
            raise typer.Exit(130) from None
    recording.write(folder / "recording.json")
    compared = compare(recording)
    write_page(recording, compared, folder / "report.html")
    typer.echo(verdict(recording, compared))
    typer.echo(machine_in_words(recording.load))
    for row in compared:
        typer.echo(f"  {row.what:<20} live {row.live:6.1f} s   simulated {row.simulated:6.1f} s")
    typer.echo(f"Report: {(folder / 'report.html').resolve()}")


def _make(folder: Path) -> None:
    """Make the folder of a run. Raises InputError if it is there already, or cannot be made."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise InputError(
            "exists already",
            field="folder",
            value=str(folder),
            remedy="Name a new one, or remove it.",
        ) from None
    except OSError as error:
        raise InputError(
            f"cannot be made: {error.strerror}", field="folder", value=str(folder), remedy=""
        ) from error
