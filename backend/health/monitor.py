"""The service's health, also if the database is slow: then the last that is known."""

from __future__ import annotations

import time
from dataclasses import dataclass

from sqlalchemy.exc import DBAPIError

from backend.clocktime import utc_now
from backend.damage import is_damage
from backend.database import Database
from backend.health.disk import disk_problem
from backend.health.integrity import Integrity
from backend.health.service import health, seen_again, worker_health
from backend.health.shared_look import SharedLook
from backend.problems import Unavailable
from backend.settings import Settings
from maat.api.service import HealthOut, WorkerOut

PATIENCE_SECONDS = 1.0


@dataclass(frozen=True)
class _Look:
    """What was found, and when by the monotonic clock."""

    found: HealthOut
    at: float


class HealthMonitor:
    """Runs one check at a time: callers during a check share its result."""

    def __init__(self, settings: Settings, integrity: Integrity) -> None:
        self._settings, self._integrity = settings, integrity
        self._looking = SharedLook(settings, self._look)
        self._last: _Look | None = None

    async def look(self) -> HealthOut:
        """Return the present health.

        If the database takes longer than PATIENCE_SECONDS, returns the last known health, marked as
        such. Raises the database's error, and Unavailable if the database has never answered.
        """
        try:
            return await self._looking.result(patience=PATIENCE_SECONDS)
        except TimeoutError:
            return self._remembered_health()

    def close(self) -> None:
        self._looking.close()

    def _look(self, database: Database) -> HealthOut:
        folder, least = self._settings.data_path, self._settings.least_free_bytes
        has_room = disk_problem(folder, least_free_bytes=least) is None
        is_damaged, stale = False, self._settings.worker_stale_seconds
        try:
            with database.session_scope(writes=False) as session:
                worker = worker_health(session, utc_now(), stale_seconds=stale)
        except DBAPIError as error:
            if not is_damage(error.orig):
                raise
            is_damaged, worker = True, WorkerOut(state="none", last_round_age_seconds=None)
        is_damaged = is_damaged or self._integrity.fault() is not None
        found = health(worker, has_room=has_room, is_damaged=is_damaged)
        self._last = _Look(found, time.monotonic())
        return found

    def _remembered_health(self) -> HealthOut:
        if self._last is None:
            raise Unavailable("The database does not answer.", headers={"Retry-After": "2"})
        return seen_again(self._last.found, time.monotonic() - self._last.at)
