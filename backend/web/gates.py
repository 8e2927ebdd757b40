"""How many requests are worked on at once. Each passes a gate in the order of its coming; behind it, a thread and a connection are free."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar

from backend.problems import Unavailable
from backend.settings import Settings
from backend.web.middleware import SAFE_METHODS

T = TypeVar("T")

_SPARE_THREADS = 4  # files of the pages are read in threads too, and never wait for a database
_LARGE_BODIES = 4  # at once in memory
_PAGE_CALLS = 12  # at once; they run on the event loop, where what comes after them waits for all of their steps


class Gate:
    """Lets `slots` through at once, first come, first served. Who waits longer than `wait_seconds` is turned away with Unavailable; None: nobody."""

    def __init__(self, slots: int, wait_seconds: float | None) -> None:
        self._slots, self._wait_seconds = slots, wait_seconds
        self._of_this_loop: RunVar[anyio.CapacityLimiter] = RunVar("gate")

    @asynccontextmanager
    async def passed(self) -> AsyncIterator[None]:
        limiter, who = self._limiter(), object()
        try:
            with anyio.fail_after(self._wait_seconds):
                await limiter.acquire_on_behalf_of(who)
        except TimeoutError:
            waited = f"{self._wait_seconds or 0:g} s"
            raise Unavailable(
                f"More is asked than this server can answer: no place within {waited}.",
                headers={"Retry-After": "2"},
            ) from None
        try:
            yield
        finally:
            limiter.release_on_behalf_of(who)

    async def run(self, function: Callable[[], T]) -> T:
        """What `function` returns, called in a thread behind the gate."""
        async with self.passed():
            return await anyio.to_thread.run_sync(function)

    def _limiter(self) -> anyio.CapacityLimiter:
        """Of the running event loop: a server has one, tests have several."""
        found = self._of_this_loop.get(None)
        if found is None:
            found = anyio.CapacityLimiter(self._slots)
            self._of_this_loop.set(found)
        return found


class Gates:
    """The gates of one application. Their slots together are the threads and the connections that it needs, so nobody waits for either.

    `door`: who asks is looked up. `work`: a request is carried out. `writes`: of these, the ones that write, so that a writer's lock that
    somebody holds leaves places to those who read. `streams`: event streams look for news. `large`: large bodies are in memory. `page_calls`:
    callbacks of the pages, which pass `door` and `work` for what they ask, and so must never be waited for behind these.
    """

    def __init__(self, settings: Settings) -> None:
        wait = settings.request_wait_seconds
        self.door = Gate(settings.door_threads, wait)
        self.work = Gate(settings.request_threads, wait)
        self.writes = Gate(max(settings.request_threads // 2, 1), wait)
        self.streams = Gate(settings.stream_threads, wait)
        self.large = Gate(_LARGE_BODIES, wait)
        self.page_calls = Gate(_PAGE_CALLS, None)
        self._threads = settings.database_connections + _SPARE_THREADS

    def provide_threads(self) -> None:
        """As many threads of the running loop as may pass the gates, and some to spare."""
        anyio.to_thread.current_default_thread_limiter().total_tokens = self._threads

    @asynccontextmanager
    async def passed_by(self, method: str) -> AsyncIterator[None]:
        """A place for a request of this method."""
        if method in SAFE_METHODS:
            async with self.work.passed():
                yield
        else:
            async with self.writes.passed(), self.work.passed():
                yield
