"""Checks the service's health on a thread and a connection of its own.

It answers even if all others are in use.
"""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from backend.database import Database
from backend.health.disk import disk_problem
from backend.health.service import health, seen_again
from backend.problems import Unavailable
from backend.settings import Settings
from maat.api.service import HealthOut

PATIENCE_SECONDS = 1.0


@dataclass(frozen=True)
class _Look:
    """What was found, and when by the monotonic clock."""

    found: HealthOut
    at: float


class HealthMonitor:
    """Runs one check at a time: callers during a check share its result.

    Starts nothing before the first call.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._database: Database | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="health")
        self._under_way: Future[HealthOut] | None = None
        self._last: _Look | None = None

    async def look(self) -> HealthOut:
        """Return the present health.

        If the database takes longer than PATIENCE_SECONDS, returns the last known health, marked as
        such. Raises the database's error, and Unavailable if the database has never answered
        or the monitor is closed.
        """
        if self._under_way is None or self._under_way.done():
            try:
                self._under_way = self._thread.submit(self._look)
            except RuntimeError:  # closed: a last request came while the service ends
                raise Unavailable("The service is ending.") from None
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                return await asyncio.shield(asyncio.wrap_future(self._under_way))
        except TimeoutError:
            return self._known()

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
        if self._database is not None:
            self._database.dispose()

    def _look(self) -> HealthOut:
        if self._database is None:
            self._database = Database.of(self._settings, connections=1)
        folder, least = self._settings.data_path, self._settings.least_free_bytes
        has_room = disk_problem(folder, least_free_bytes=least) is None
        with self._database.session_scope(writes=False) as session:
            found = health(
                session, stale_seconds=self._settings.worker_stale_seconds, has_room=has_room
            )
        self._last = _Look(found, time.monotonic())
        return found

    def _known(self) -> HealthOut:
        if self._last is None:
            raise Unavailable("The database does not answer.", headers={"Retry-After": "2"})
        return seen_again(self._last.found, time.monotonic() - self._last.at)
