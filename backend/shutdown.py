"""Knows when the process has been asked to stop.

Open event streams then end instead of delaying the server.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Shutdown:
    """A flag that is set once and awaited by many.

    Make and await it on the event loop.
    """

    def __init__(self) -> None:
        self._begun = asyncio.Event()

    def begin(self) -> None:
        self._begun.set()

    async def wait(self, seconds: float) -> bool:
        """Sleep for up to `seconds`; return whether the shutdown has begun."""
        try:
            await asyncio.wait_for(self._begun.wait(), seconds)
        except TimeoutError:
            return False
        return True

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Begin when a stop signal arrives, then run the server's own handler.

        Signals reach the main thread only.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop, before = (
            asyncio.get_running_loop(),
            {number: signal.getsignal(number) for number in _SIGNALS},
        )

        def on_signal(number: int, frame: FrameType | None) -> None:
            loop.call_soon_threadsafe(self.begin)
            handler = before[signal.Signals(number)]
            if callable(handler):
                handler(number, frame)

        for number in _SIGNALS:
            signal.signal(number, on_signal)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
