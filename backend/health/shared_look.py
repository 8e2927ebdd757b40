"""Looks at the service on a thread and a connection of their own, while all others are in use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

from backend.database import Database
from backend.settings import Settings

Found = TypeVar("Found")


class SharedLook(Generic[Found]):
    """Runs one look at a time: callers during a look share its result.

    The first call opens thread and connection. A call after `close` opens them again: the last
    requests may come while the service ends.
    """

    def __init__(self, settings: Settings, look: Callable[[Database], Found]) -> None:
        self._settings, self._look = settings, look
        self._database: Database | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._under_way: Future[Found] | None = None

    async def result(self, *, patience: float) -> Found:
        """Return what is found. Raises what the look raises, and TimeoutError after `patience` s.

        A look that takes longer goes on.
        """
        if self._under_way is None or self._under_way.done():
            self._under_way = self._begun()
        async with asyncio.timeout(patience):
            return await asyncio.shield(asyncio.wrap_future(self._under_way))

    def close(self) -> None:
        """Let go of thread and connection. A caller that waits for a look gets CancelledError."""
        thread, database = self._thread, self._database
        self._thread = self._database = self._under_way = None
        if thread is not None:
            thread.shutdown(wait=False, cancel_futures=True)
        if database is not None:
            database.dispose()

    def _begun(self) -> Future[Found]:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="look")
        if self._database is None:
            self._database = Database.of(self._settings, connections=1)
        return self._thread.submit(self._look, self._database)
