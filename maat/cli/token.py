"""`maat token create`: makes a token for the API on the database's machine.

Runs the service's own program for it; imports no backend.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from maat.cli.numbers import number_option
from maat.cli.service import AsJson, show
from maat.scheduling.errors import InputError

MAX_DAYS = 36_500.0

app = typer.Typer(
    help="API tokens, made on the machine that holds the database.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.callback()
def tokens() -> None:
    """API tokens, made on the machine that holds the database."""


@app.command("create")
def create(
    user: Annotated[
        str,
        typer.Option(help="The token's user. `local` is the administrator of the first start."),
    ] = "local",
    name: Annotated[str, typer.Option(help="What the token is for.")] = "token",
    days: Annotated[
        float | None,
        number_option(
            "--days", least=0, most=MAX_DAYS, help="Days until it expires; default: never."
        ),
    ] = None,
    data_dir: Annotated[
        Path,
        typer.Option(
            envvar="MAAT_DATA_DIR",
            help="The data folder of `maat up`. MAAT_DATABASE_URL, if set, takes precedence.",
        ),
    ] = Path("var"),
    as_json: AsJson = False,
) -> None:
    """Make a token and print it.

    It is shown only once and stored nowhere: only its digest is kept.
    """
    _require_database(data_dir)
    expiry = () if days is None else ("--days", str(days))
    arguments = (sys.executable, "-m", "backend.new_token", "--user", user, "--name", name, *expiry)
    made = subprocess.run(
        arguments,
        env={**os.environ, "MAAT_DATA_DIR": str(data_dir.resolve())},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if made.returncode:
        raise typer.Exit(made.returncode)
    secret = made.stdout.strip()
    show({"token": secret}, as_json, secret)


def _require_database(data_dir: Path) -> None:
    if not os.environ.get("MAAT_DATABASE_URL") and not (data_dir / "maat.db").is_file():
        raise InputError(
            "has no database of Maat",
            field="data_dir",
            value=str(data_dir),
            remedy="Start `maat up` once, give its data folder, or set MAAT_DATABASE_URL.",
        )
