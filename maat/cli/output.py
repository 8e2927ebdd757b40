"""What commands share for output: lines, tables, and checked files."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, redirect_stdout
from pathlib import Path

import typer

from maat.cli.tables import drawn
from maat.csv_output import csv_text
from maat.laboratory.figures import Figure
from maat.library.files import write_whole
from maat.library.tables import Table
from maat.scheduling.errors import MaatError


def heading(figure: Figure) -> str:
    """Return a figure's title with its unit."""
    return figure.title if figure.unit is None else f"{figure.title}, {figure.unit}"


def say(text: str) -> None:
    """Print a line. Raises MaatError if it cannot be written, as on a full disk."""
    try:
        typer.echo(text)
    except BrokenPipeError:
        raise
    except OSError as failed:
        # The rest of the buffer would fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise MaatError(
            f"the output cannot be written ({failed.strerror}). Send it where there is space."
        ) from failed


def warn(lines: Iterable[str]) -> None:
    """Print warnings to standard error, each once."""
    for line in dict.fromkeys(lines):
        typer.echo(f"maat: {line}", err=True)


def printed_aside() -> AbstractContextManager[object]:
    """Send what a user's own policy prints to standard error: standard output has the result."""
    return redirect_stdout(sys.stderr)


def print_json(value: object) -> None:
    say(json.dumps(value, indent=2))


def print_table(
    names: Sequence[str], figures: Sequence[str], rows: Sequence[Sequence[str]]
) -> None:
    say(drawn(names, figures, rows))


def write_table(path: Path, table: Table, *, field: str = "csv") -> None:
    """Write a table as a CSV file that a spreadsheet opens without running what stands in it.

    An unknown value is empty. Raises MaatError if it cannot be completed.
    """
    text = csv_text(table.columns, (tuple(row.values()) for row in table))
    write_whole(path, text.encode(), field=field)
