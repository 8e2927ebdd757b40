"""A progress bar on a terminal, drawn by rich if it is there, and in a notebook's cell."""

from __future__ import annotations

import html
import sys
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rich.progress import Progress

REFRESH_SECONDS = 0.2


class _Drawn(Protocol):
    """What draws a bar."""

    def start(self) -> None: ...

    def show(self, done: int, total: int, at: str) -> None: ...

    def say(self, text: str) -> None: ...

    def stop(self) -> None: ...


class Bar:
    """A progress bar on a terminal's standard error, or in a notebook's cell.

    `label`: what it is of; `quiet`: shows nothing; `total`: what is to be done, if it is known.
    """

    def __init__(self, label: str, *, quiet: bool, total: float | None = None) -> None:
        self._bar: _Drawn | None = None
        self._quiet = quiet
        if quiet:
            return
        if _in_notebook():
            self._bar = _CellBar(label)
        elif sys.stderr.isatty():
            try:
                self._bar = _TerminalBar(label, total)
            except ModuleNotFoundError:  # rich comes with the command line
                return

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
            self._bar.show(done, total, at)

    def say(self, text: str) -> None:
        """Print a text before the work begins, above the bar if one is shown."""
        if self._bar is not None:
            self._bar.say(text)
        elif not self._quiet:
            print(text, file=sys.stderr)


class _TerminalBar:
    def __init__(self, label: str, total: float | None) -> None:
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
        self._bar: Progress = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task(label, total=total, at="")
        self.start, self.stop = self._bar.start, self._bar.stop

    def show(self, done: int, total: int, at: str) -> None:
        self._bar.update(self._task, completed=done, total=total, at=at)

    def say(self, text: str) -> None:
        self._bar.console.print(text, markup=False, highlight=False)


class _CellBar:
    """HTML that is updated in place: rich would need ipywidgets there, and warn without."""

    def __init__(self, label: str) -> None:
        self._label, self._shown_at = label, -float("inf")
        self._cell: Any = import_module("IPython.display")
        self._display: Any = None

    def start(self) -> None:
        self._display = self._cell.display(self._cell.HTML(""), display_id=True)

    def show(self, done: int, total: int, at: str) -> None:
        if time.monotonic() - self._shown_at >= REFRESH_SECONDS:
            self._shown_at = time.monotonic()
            words = html.escape(f"{self._label} {done}/{total} {at}")
            self._update(f'<progress value="{done}" max="{max(total, 1)}"></progress> {words}')

    def say(self, text: str) -> None:
        self._label = f"{text} {self._label}"
        self._update(html.escape(text))

    def stop(self) -> None:
        self._update("")

    def _update(self, content: str) -> None:
        if self._display is not None:  # there is none outside a running kernel
            self._display.update(self._cell.HTML(content))


def _in_notebook() -> bool:
    return "ipykernel" in sys.modules
