"""Whose turn it is among the threads of a process: forecasts of clusters, or runs of tenants.

What waits is not ended: it stands still between two rounds that it plays, and goes on from there.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

LOW_PRIORITY = 10  # as of `nice`
TURN_SECONDS = 2.0
"""CPU seconds after which a thread gives way to the others, if any waits."""


class Turns:
    """Questions that are being answered, and a line of threads that wait for their end and a turn.

    `turn_seconds`: as TURN_SECONDS.
    """

    def __init__(self, turn_seconds: float = TURN_SECONDS) -> None:
        self._turn_seconds = turn_seconds
        self._changed = threading.Condition()
        self._questions = 0
        self._line: deque[int] = deque()  # threads; the first has the turn
        self._since = 0.0  # its CPU seconds when it got it
        self._seconds: dict[int, float] = {}  # of those whose turns have a length of their own

    @contextmanager
    def question(self) -> Iterator[None]:
        """Have all that calls `wait` wait while the block runs."""
        with self._changed:
            self._questions += 1
        try:
            yield
        finally:
            with self._changed:
                self._questions -= 1
                self._changed.notify_all()

    @contextmanager
    def line(self, turn_seconds: float | None = None) -> Iterator[None]:
        """Join the line; the block begins with its first turn. `turn_seconds`: of its own turns."""
        me = threading.get_ident()
        with self._changed:
            self._line.append(me)
            self._seconds[me] = self._turn_seconds if turn_seconds is None else turn_seconds
            self._since = time.thread_time() if self._line[0] == me else self._since
        try:
            self.wait()
            yield
        finally:
            with self._changed:
                self._line.remove(me)
                del self._seconds[me]
                self._changed.notify_all()

    def wait(self) -> None:
        """Return once no question is being answered and this thread has the turn.

        One that has had its turn for long enough goes to the end of the line.
        """
        me = threading.get_ident()
        with self._changed:
            if self._has_turn(me) and time.thread_time() - self._since >= self._seconds[me]:
                self._line.rotate(-1)
                self._since = time.thread_time()  # if it is alone
                self._changed.notify_all()
            had_turn = self._has_turn(me)
            while self._questions or not self._has_turn(me):
                self._changed.wait()
            if not had_turn:
                self._since = time.thread_time()

    def _has_turn(self, thread: int) -> bool:
        return self._line[0] == thread


TURNS = Turns()
"""Those of forecasts in this process."""


def lower_priority() -> None:
    """Give this thread less of a busy machine than rounds, pages and questions have.

    Elsewhere than on Linux there is no priority of a thread: it stays as it is.
    """
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOW_PRIORITY)
