"""A run's turn at its worker: what it calls between its rounds.

A worker plays the runs of several tenants in turns when more tenants want it than there are
workers. Then a run stands still between two of its rounds while another one goes on.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy.exc import SQLAlchemyError

from maat.scheduling.errors import MaatError
from worker.turns import Turns

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""Of this worker's time between two looks at the CPU seconds used, and at who waits."""


class RunTooLong(MaatError):
    """A run has used more CPU seconds than one run may. The message is for its owner."""

    def __init__(self, most_seconds: float) -> None:
        super().__init__(
            f"The run used more than {most_seconds / 3600:g} CPU hours and was ended: play fewer "
            "jobs, or another policy; an operator can raise MAAT_RUN_CPU_HOURS."
        )


class Turn:
    """The turn of a run. One without arguments is of a run that has its worker alone.

    `charge` gets the CPU seconds that were used since the last call. `invite` lets others in who
    wait. `seconds`: CPU seconds until another run's turn; `most_seconds`: of the whole run.
    `begun`: whether a run was claimed.
    """

    def __init__(
        self,
        line: Turns | None = None,
        *,
        charge: Callable[[float], object] = lambda _: None,
        invite: Callable[[], object] = lambda: None,
        seconds: float = 1.0,
        most_seconds: float = math.inf,
    ) -> None:
        self._line = Turns() if line is None else line
        self._charge, self._invite, self._seconds = charge, invite, seconds
        self._most_seconds = most_seconds
        self._began_at, self._charged_at, self._look_at = 0.0, 0.0, 0.0
        self.begun = False

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Work on a run that was claimed, in this thread; the block begins with its first turn."""
        self.begun = True
        self._began_at = self._charged_at = time.thread_time()
        with self._line.line(self._seconds):
            self._look_at = time.monotonic() + LOOK_SECONDS
            try:
                yield
            finally:
                self._settle()

    def look(self) -> None:
        """Let others have their turns. Raises RunTooLong."""
        self._line.wait()
        if time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + LOOK_SECONDS
            self._settle()
            if time.thread_time() - self._began_at > self._most_seconds:
                raise RunTooLong(self._most_seconds)
            with logged("others were not let in"):
                self._invite()

    def _settle(self) -> None:
        now = time.thread_time()
        with logged("CPU seconds of a run were not noted; the next look notes them"):
            self._charge(now - self._charged_at)
            self._charged_at = now


@contextmanager
def logged(what: str) -> Iterator[None]:
    """Log errors of the database inside: they must not end a run."""
    try:
        yield
    except SQLAlchemyError:
        log.exception("%s", what)
