"""Whose turn it is in the forecasting process: a question goes first, and the other work waits.

What waits is not ended: it stands still between two rounds of a draw, and goes on from there.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

LOW_PRIORITY = 10  # as of `nice`


class Turns:
    """Questions that are being answered, and what waits for their end."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._questions = 0

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

    def wait(self) -> None:
        """Return once no question is being answered."""
        with self._changed:
            while self._questions:
                self._changed.wait()


TURNS = Turns()
"""Those of this process."""


def lower_priority() -> None:
    """Give this thread less of a busy machine than rounds, pages and questions have.

    Elsewhere than on Linux there is no priority of a thread: it stays as it is.
    """
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOW_PRIORITY)
