"""A progress bar on a terminal and in a notebook; nothing elsewhere, or without rich."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress


class Bar:
    """A progress bar on a terminal's standard error, or in a notebook's cell.

    `label`: what it is of; `quiet`: shows nothing; `total`: what is to be done, if it is known.
    """

    def __init__(self, label: str, *, quiet: bool, total: float | None = None) -> None:
        self._bar: Progress | None = None
        if quiet or not (sys.stderr.isatty() or _in_notebook()):
            return
        try:
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                MofNCompleteColumn,
                Progress,
                TextColumn,
                TimeElapsedColumn,
            )
        except ModuleNotFoundError:  # it comes with the command line
            return
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
        """Show that `done` of `total` are done; `at`: where it is."""
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=total, at=at)


def _in_notebook() -> bool:
    return "ipykernel" in sys.modules
