"""Limits how many requests are processed at once.

Each passes a gate in order of arrival; behind it, a thread and a connection are free.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TypeVar

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar

from backend.problems import Unavailable
from backend.settings import Settings
from backend.web.middleware import SAFE_METHODS

T = TypeVar("T")

_SPARE_THREADS = 4  # threads also read files of the pages, which need no database
_LARGE_BODIES = 4  # in memory at once
_PROVIDER_CALLS = 2  # at once, to whom people sign in at
# At once. They run on the event loop, so that later ones wait for all of their steps.
_PAGE_CALLS = 12


class _Place:
    """A place behind a gate, held from entering to leaving. A free one is taken at once."""

    __slots__ = ("_limiter", "_wait_seconds")

    def __init__(self, limiter: anyio.CapacityLimiter, wait_seconds: float | None) -> None:
        self._limiter, self._wait_seconds = limiter, wait_seconds

    async def __aenter__(self) -> None:
        try:
            self._limiter.acquire_on_behalf_of_nowait(self)
        except anyio.WouldBlock:
            await self._awaited()

    async def __aexit__(self, *_: object) -> None:
        self._limiter.release_on_behalf_of(self)

    async def _awaited(self) -> None:
        try:
            with anyio.fail_after(self._wait_seconds):
                await self._limiter.acquire_on_behalf_of(self)
        except TimeoutError:
            waited = f"{self._wait_seconds or 0:g} s"
            raise Unavailable(
                f"The server is too busy: no place became free within {waited}.",
                headers={"Retry-After": "2"},
            ) from None


class Gate:
    """Admits `slots` at once, first come, first served.

    A caller that waits longer than `wait_seconds` gets Unavailable; None: no limit.
    """

    def __init__(self, slots: int, wait_seconds: float | None) -> None:
        self._slots, self._wait_seconds = slots, wait_seconds
        self._of_this_loop: RunVar[anyio.CapacityLimiter] = RunVar("gate")

    def passed(self) -> AbstractAsyncContextManager[None]:
        """Hold a place in this block."""
        return _Place(self._limiter(), self._wait_seconds)

    async def run(self, function: Callable[[], T]) -> T:
        """Call `function` in a thread behind the gate; return its result."""
        async with self.passed():
            return await anyio.to_thread.run_sync(function)

    def _limiter(self) -> anyio.CapacityLimiter:
        """Return the limiter of the running event loop.

        A server has one loop, tests have several.
        """
        found = self._of_this_loop.get(None)
        if found is None:
            found = anyio.CapacityLimiter(self._slots)
            self._of_this_loop.set(found)
        return found


class Gates:
    """The gates of one application.

    Their slots together equal its threads and connections, so that no request waits for either.
    `door`: looks up who asks. `work`: carries out requests. `writes`: those of them that write, so
    that a held writer's lock leaves places for readers. `streams`: event streams look for news.
    `large`: large bodies in memory. `providers`: calls of an OpenID Connect provider, which hold no
    connection. `page_calls`: callbacks of the pages; they pass `door` and
    `work` for their own requests, so these must never wait for `page_calls`.
    """

    def __init__(self, settings: Settings) -> None:
        wait = settings.request_wait_seconds
        self.door = Gate(settings.door_threads, wait)
        self.work = Gate(settings.request_threads, wait)
        self.writes = Gate(max(settings.request_threads // 2, 1), wait)
        self.streams = Gate(settings.stream_threads, wait)
        self.large = Gate(_LARGE_BODIES, wait)
        self.page_calls = Gate(_PAGE_CALLS, None)
        self.providers = Gate(_PROVIDER_CALLS, wait)
        self._threads = settings.database_connections + _PROVIDER_CALLS + _SPARE_THREADS

    def provide_threads(self) -> None:
        """Provide threads for all gates on the running loop, and some spare ones."""
        anyio.to_thread.current_default_thread_limiter().total_tokens = self._threads

    @staticmethod
    async def in_thread(function: Callable[[], T]) -> T:
        """Call `function` in a thread, for who holds a place."""
        return await anyio.to_thread.run_sync(function)

    @asynccontextmanager
    async def passed_by(self, method: str) -> AsyncIterator[None]:
        """Hold the places for a request of this method."""
        async with AsyncExitStack() as stack:
            for gate in self.before(method):
                await stack.enter_async_context(gate.passed())
            yield

    def before(self, method: str) -> Sequence[Gate]:
        """Return the gates that a request of this method passes, in order."""
        return (self.work,) if method in SAFE_METHODS else (self.writes, self.work)
