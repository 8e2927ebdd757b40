"""Runs a command in a process that is watched, so that its end without a word is told.

A policy of somebody else's may call os._exit, or crash: nothing in that process can tell of it.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

from maat.launch.processes import die_with_parent

_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def watched(work: Callable[[], int | None], *, what: str) -> int | None:
    """Do the work in a child of this process, and return its exit code.

    `what` it does completes "The process that ...". Returns 2, after a sentence on standard error,
    if the child ended before Python did. Elsewhere than on Linux the work is done in this process.
    """
    if sys.platform != "linux":
        return work()
    reading, writing = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.close(reading)
        return _done_here(work, writing)
    os.close(writing)
    stopped_by = _pass_on_signals(child)
    _, status = os.waitpid(child, 0)
    # A process that the policy left behind may have the pipe open still: do not wait for its end.
    os.set_blocking(reading, False)
    try:
        was_in_order = os.read(reading, 1) != b""
    except BlockingIOError:
        was_in_order = False
    code = os.waitstatus_to_exitcode(status)
    if was_in_order or -code in stopped_by:
        return code if code >= 0 else 128 - code
    how = f"with exit code {code}" if code >= 0 else f"by {signal.Signals(-code).name}"
    print(
        f"maat: The process that {what} ended {how} in the middle. A policy must not end it "
        "(os._exit), nor crash it.",
        file=sys.stderr,
    )
    return 2


def _done_here(work: Callable[[], int | None], writing: int) -> int | None:
    """Do the work; when Python ends, whatever ends it, say so on the pipe."""
    die_with_parent()
    atexit.register(os.write, writing, b".")
    signal.signal(signal.SIGINT, _interrupt_once)
    try:
        return work()
    except KeyboardInterrupt:
        print("maat: Interrupted.", file=sys.stderr)
        return 128 + signal.SIGINT


def _interrupt_once(number: int, _: FrameType | None) -> None:
    """Interrupt Python: a terminal signals this process too, besides the one that watches it."""
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _pass_on_signals(child: int) -> set[int]:
    """Pass signals on to the child; return the set of those that were, which grows."""
    passed: set[int] = set()

    def pass_on(number: int, _: FrameType | None) -> None:
        passed.add(number)
        with suppress(ProcessLookupError):  # it may just have ended
            os.kill(child, number)

    for number in _PASSED_ON:
        signal.signal(number, pass_on)
    return passed
