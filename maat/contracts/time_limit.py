"""Ends what a policy does in a round if it takes too long; on systems that have such alarms."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

AGAIN_SECONDS = 1.0  # the alarm repeats: a bare `except:` of the policy may have caught it


class TimeOver(BaseException):
    """The time is over. No `except Exception` of a policy or of hypothesis catches it."""


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Raise TimeOver in what is done under it once `seconds` are over; None: never.

    Only the main thread has alarms.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if seconds is None or not is_main or not hasattr(signal, "setitimer"):
        yield
        return

    def end(*_: object) -> None:
        raise TimeOver

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
