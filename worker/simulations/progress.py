"""What a running simulation does between its rounds: report, and stop when it must not go on."""

from __future__ import annotations

import time
from collections.abc import Callable

from maat.simulation.record import Cancelled, Position

PROGRESS_SECONDS = 0.5
STALLED_ROUNDS = 50_000  # a month of one-minute rounds


class Progress:
    """Reports a simulation and asks whether it must stop, at most every `seconds`.

    `stopped`: it had to. `write` gets what is done, as it is reported, and the message.
    """

    def __init__(
        self,
        must_stop: Callable[[], bool],
        *,
        write: Callable[[float, str], object] = lambda *_: None,
        seconds: float = PROGRESS_SECONDS,
    ) -> None:
        self._must_stop, self._write, self._seconds = must_stop, write, seconds
        self._next_at = 0.0
        self.stopped = False

    def report(self, done: float, message: str = "") -> None:
        """Raise Cancelled if the simulation must stop."""
        if time.monotonic() < self._next_at:
            return
        self._next_at = time.monotonic() + self._seconds
        self._write(done, message)
        self.stopped = self._must_stop()
        if self.stopped:
            raise Cancelled


class Stall:
    """Ends a run in which no job has finished for long.

    Its remaining jobs wait for GPUs that the cluster does not have.
    """

    def __init__(self) -> None:
        self._finished, self._since = 0, 0

    def look(self, position: Position) -> None:
        if position.finished != self._finished:
            self._finished, self._since = position.finished, position.round_number
        if position.round_number - self._since > STALLED_ROUNDS:
            raise Cancelled
