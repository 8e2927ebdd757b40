"""`maat db ...`: backs up, restores and checks the database, on a machine that reaches it.

Runs the service's own program for it; imports no backend.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from maat.cli.service import AsJson

DataDir = Annotated[
    Path,
    typer.Option(
        envvar="MAAT_DATA_DIR",
        help="The data folder of `maat up`. MAAT_DATABASE_URL, if set, takes precedence.",
    ),
]


def backup(
    file: Annotated[Path, typer.Argument(help="The file to write.")],
    force: Annotated[bool, typer.Option("--force", help="Replace a file that there is.")] = False,
    data_dir: DataDir = Path("var"),
    as_json: AsJson = False,
) -> None:
    """Write the whole database to one file, while Maat runs."""
    _run(data_dir, as_json, "backup", str(file), *(["--force"] if force else []))


def restore(
    file: Annotated[Path, typer.Argument(help="A file of `maat db backup`.")],
    force: Annotated[
        bool, typer.Option("--force", help="Replace all that is in the database.")
    ] = False,
    unverified: Annotated[
        bool,
        typer.Option(
            "--unverified",
            help="Also a backup that the secret key here has not signed, or that is not sound.",
        ),
    ] = False,
    data_dir: DataDir = Path("var"),
    as_json: AsJson = False,
) -> None:
    """Write a backup into an empty database, while Maat is stopped."""
    flags = [*(["--force"] if force else []), *(["--unverified"] if unverified else [])]
    _run(data_dir, as_json, "restore", str(file), *flags)


def check(
    file: Annotated[
        Path | None, typer.Argument(help="A backup; default: the database itself.")
    ] = None,
    data_dir: DataDir = Path("var"),
    as_json: AsJson = False,
) -> None:
    """Check that the database, or a backup, is whole."""
    _run(data_dir, as_json, "check", *([] if file is None else [str(file)]))


def _run(data_dir: Path, as_json: bool, *arguments: str) -> None:
    done = subprocess.run(
        (
            sys.executable,
            "-m",
            "backend.backups",
            *(["--json"] if as_json else []),
            *arguments,
        ),
        env={**os.environ, "MAAT_DATA_DIR": str(data_dir.resolve())},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    typer.echo(done.stdout, nl=False)
    raise typer.Exit(done.returncode)
