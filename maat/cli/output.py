"""What commands share for output: lines, tables, and checked files."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import typer

from maat.cli.tables import drawn
from maat.csv_output import defused
from maat.laboratory.figures import Figure
from maat.scheduling.errors import InputError, MaatError


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


def print_json(value: object) -> None:
    say(json.dumps(value, indent=2))


def print_table(
    names: Sequence[str], figures: Sequence[str], rows: Sequence[Sequence[str]]
) -> None:
    say(drawn(names, figures, rows))


def check_writable(path: Path, *, inputs: Sequence[Path], field: str = "csv") -> None:
    """Check before the work that the file can be written and is not an input.

    `field`: the option that names it. Raises InputError.
    """
    read = next((given for given in inputs if _is_part_of(path, given)), None)
    if read is not None:
        raise InputError(
            f"would overwrite the input {read}",
            field=field,
            value=str(path),
            remedy="Name another file.",
        )
    new = not path.exists()
    try:
        with path.open("a", encoding="utf-8"):
            pass
    except OSError as failed:
        raise InputError(
            f"cannot be written ({failed.strerror})",
            field=field,
            value=str(path),
            remedy="Name a file in a folder that exists.",
        ) from failed
    if new:
        path.unlink()


def _is_part_of(path: Path, given: Path) -> bool:
    """Return whether this is the given file, by any name, or is in the given folder."""
    if path.exists() and given.exists() and path.samefile(given):
        return True
    return given.is_dir() and path.resolve().is_relative_to(given.resolve())


def write_csv(path: Path, header: Iterable[object], rows: Iterable[Iterable[Any]]) -> None:
    """Write a CSV file that a spreadsheet opens without running what stands in it.

    Raises MaatError if it cannot be completed.
    """
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(header)
            for row in rows:
                writer.writerow([defused(cell) if isinstance(cell, str) else cell for cell in row])
    except OSError as failed:
        raise MaatError(
            f"csv: {path} cannot be written ({failed.strerror}). Give a file where there is space."
        ) from failed
