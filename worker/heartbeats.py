"""A worker says every few seconds that it listens to its queues.

It is said from the loop that takes tasks: a worker that has lost the broker, or hangs, falls
silent. Writing happens beside that loop, so that a slow database holds up no task.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from importlib.metadata import version
from typing import Any

import sqlalchemy as sa
from celery import bootsteps
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import col

from backend.database import Database
from backend.models import WorkerHeartbeat
from backend.moments import moment_of
from backend.settings import get_settings

HEARTBEAT_SECONDS = 5.0
_FORGOTTEN_AFTER = timedelta(days=1)

log = logging.getLogger(__name__)


class Heartbeat(bootsteps.StartStopStep):  # type: ignore[misc]  # Celery has no types
    """A part of the worker that is started with its timer.

    It has connections of its own, which the processes of the pool must not share.
    """

    requires = frozenset({"celery.worker.components:Timer"})

    def __init__(self, parent: Any, **given: Any) -> None:
        super().__init__(parent, **given)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="heartbeat")
        self._under_way: Future[None] | None = None
        self._database: Database | None = None

    def start(self, parent: Any) -> None:
        queues = sorted(parent.app.amqp.queues.consume_from)
        parent.timer.call_repeatedly(HEARTBEAT_SECONDS, self._beat, (str(parent.hostname), queues))

    def stop(self, parent: Any) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _beat(self, name: str, queues: Sequence[str]) -> None:
        if self._under_way is None or self._under_way.done():
            self._under_way = self._thread.submit(self._write, name, queues)

    def _write(self, name: str, queues: Sequence[str]) -> None:
        if self._database is None:
            self._database = Database.of(get_settings(), connections=1)
        try:
            show_life(self._database, name, queues)
        except SQLAlchemyError as error:  # the next one may succeed; readers see the silence
            log.debug("a heartbeat could not be written: %s", type(error).__name__)


def show_life(database: Database, name: str, queues: Sequence[str]) -> None:
    """Write that this worker listens now, and forget those that have been silent for a day."""
    insert = sqlite.insert if database.is_sqlite else postgresql.insert
    with database.session_scope(hasty=True) as session:
        now = moment_of(session).wall
        row = {"name": name, "queues": list(queues), "version": version("maat"), "at": now}
        session.execute(
            insert(WorkerHeartbeat)
            .values(**row, started_at=now)
            .on_conflict_do_update(index_elements=["name"], set_=row)
        )
        old = col(WorkerHeartbeat.at) < now - _FORGOTTEN_AFTER
        session.execute(sa.delete(WorkerHeartbeat).where(old))
