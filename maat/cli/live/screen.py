"""Shows something that changes until q, Ctrl+C or SIGTERM ends it."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic, TypeVar

from maat.cli.live.changes import AGAIN_SECONDS, Changes

if TYPE_CHECKING:
    from rich.console import RenderableType

Read = TypeVar("Read")

LEAST_SECONDS = 1.0  # between two readings: an accelerated cluster has many rounds a second
BEAT_SECONDS = 1.0  # between two drawings of the same: a countdown goes on
_ENDS = b"qQ\x03"


class Watched(Generic[Read]):
    """What is read again after a change, at most once in LEAST_SECONDS."""

    def __init__(self, changes: Changes, read: Callable[[], Read]) -> None:
        self._changes, self._read = changes, read
        self._due: float | None = None
        self._read_at = time.monotonic()
        self.shown = read()
        self.away: str | None = None

    @property
    def bell(self) -> int:
        return self._changes.bell

    def seconds_left(self) -> float | None:
        """Return how long nothing is to be read, unless something changes; None: for ever."""
        return None if self._due is None else max(self._due - time.monotonic(), 0.0)

    def hear(self) -> None:
        """Take the news. Raises the error that ends the stream."""
        for news in self._changes.take():
            if news.error is not None:
                raise news.error
            self.away = news.away
            if news.has_changed and self._due is None:
                self._due = self._read_at + LEAST_SECONDS

    def read_if_due(self) -> bool:
        """Read what has changed; return whether it was read."""
        from maat.client import ApiError, Unreachable

        if self._due is None or time.monotonic() < self._due:
            return False
        try:
            self.shown = self._read()
        except (ApiError, Unreachable) as error:
            if isinstance(error, ApiError) and not error.retryable:
                raise
            self.away, self._due = "The service does not answer; trying again.", None
            self._due = time.monotonic() + AGAIN_SECONDS
            return False
        self._due, self._read_at, self.away = None, time.monotonic(), None
        return True


def print_changes(watched: Watched[Read], show: Callable[[Read], None]) -> None:
    """Print it now, and again after each change: for a pipe. Ends with Ctrl+C or a closed pipe."""
    try:
        show(watched.shown)
        while True:
            if watched.bell in _readable([watched.bell], watched.seconds_left()):
                watched.hear()
            if watched.read_if_due():
                show(watched.shown)
                sys.stdout.flush()
    except KeyboardInterrupt:
        return


def show_changes(
    watched: Watched[Read], draw: Callable[[Read, str | None, int], RenderableType]
) -> None:
    """Fill the terminal with it until q or Ctrl+C.

    `draw`: makes the picture of what was read, why it may be old, and the lines there are.
    """
    from rich.console import Console
    from rich.live import Live

    console = Console()
    with _ends_by_signal(), _keys() as keys:
        try:
            with Live(console=console, screen=True, auto_refresh=False) as live:
                while True:
                    picture = draw(watched.shown, watched.away, console.height)
                    live.update(picture, refresh=True)
                    if not _wait(watched, keys):
                        return
        except KeyboardInterrupt:
            return


def _wait(watched: Watched[Read], keys: int | None) -> bool:
    """Wait for something to draw; return whether to go on."""
    left = watched.seconds_left()
    patience = BEAT_SECONDS if left is None else min(left, BEAT_SECONDS)
    sources = [watched.bell] if keys is None else [watched.bell, keys]
    found = _readable(sources, patience)
    if keys in found:
        pressed = os.read(keys, 64) if keys is not None else b""
        if not pressed or set(pressed) & set(_ENDS):
            return False
    if watched.bell in found:
        watched.hear()
    watched.read_if_due()
    return True


def _readable(sources: list[int], seconds: float | None) -> list[int]:
    return select.select(sources, [], [], seconds)[0]


@contextmanager
def _keys() -> Iterator[int | None]:
    """Yield the keyboard, whose keys come at once and are not shown; None if there is none."""
    import termios
    import tty

    if not sys.stdin.isatty():
        yield None
        return
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    tty.setcbreak(keyboard)
    try:
        yield keyboard
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)


@contextmanager
def _ends_by_signal() -> Iterator[None]:
    """Let SIGTERM end the drawing, so that the terminal is left as it was."""

    def end(*_: object) -> None:
        raise SystemExit(128 + signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
