"""What commands share in saying what they found: a bar while they work, lines, and files that are checked before the work."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from maat.cli.tables import drawn
from maat.laboratory.figures import Figure
from maat.scheduling.errors import InputError, MaatError

if TYPE_CHECKING:
    from rich.progress import Progress


class Bar:
    """A bar on a terminal, silence elsewhere."""

    def __init__(self, label: str, *, quiet: bool, total: float | None = None) -> None:
        self._bar: Progress | None = None
        if quiet or not sys.stderr.isatty():
            return
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
        )

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[at]}"),
            TimeElapsedColumn(),
        )
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task(label, total=total, at="")

    def __enter__(self) -> Bar:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, done: int, total: int, at: str = "") -> None:
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=total, at=at)


def heading(figure: Figure) -> str:
    """A figure's title with its unit."""
    return figure.title if figure.unit is None else f"{figure.title}, {figure.unit}"


def say(text: str) -> None:
    """Print a line. Raises MaatError where nobody can take it, as on a full disk."""
    try:
        typer.echo(text)
    except BrokenPipeError:
        raise
    except OSError as failed:
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
        )  # what is left in the buffer would fail once more at the end
        raise MaatError(
            f"the output cannot be written ({failed.strerror}). Send it where there is room."
        ) from failed


def warn(lines: Iterable[str]) -> None:
    """Say beside the output, each once, what a reader should know before it comes."""
    for line in dict.fromkeys(lines):
        typer.echo(f"maat: {line}", err=True)


def print_json(value: object) -> None:
    say(json.dumps(value, indent=2))


def print_table(
    names: Sequence[str], figures: Sequence[str], rows: Sequence[Sequence[str]]
) -> None:
    say(drawn(names, figures, rows))


def check_writable(path: Path, *, inputs: Sequence[Path]) -> None:
    """Before the work, not after it: what is written is none of the inputs, and can be. Raises InputError."""
    read = next((given for given in inputs if _is_part_of(path, given)), None)
    if read is not None:
        raise InputError(
            f"would overwrite what is read from {read}",
            field="csv",
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
            field="csv",
            value=str(path),
            remedy="Name a file in a folder that exists.",
        ) from failed
    if new:
        path.unlink()


def _is_part_of(path: Path, given: Path) -> bool:
    """Whether this is the given file, by whatever name, or lies in the given folder."""
    if path.exists() and given.exists() and path.samefile(given):
        return True
    return given.is_dir() and path.resolve().is_relative_to(given.resolve())


def write_csv(path: Path, header: Iterable[object], rows: Iterable[Iterable[Any]]) -> None:
    """Raises MaatError where it cannot be written to its end."""
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(header)
            writer.writerows(rows)
    except OSError as failed:
        raise MaatError(
            f"csv: {path} cannot be written ({failed.strerror}). Name a file where there is room."
        ) from failed
