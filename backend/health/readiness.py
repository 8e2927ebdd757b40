"""Whether the whole deployment works: each thing that it needs is tried."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kombu.exceptions import OperationalError as BrokerAway
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlmodel import Session, col, select

from backend.clocktime import utc_now
from backend.damage import is_damage
from backend.database import Database
from backend.health.disk import disk_problem
from backend.health.integrity import REMEDY, Integrity
from backend.health.models import WorkerHeartbeat
from backend.health.service import worker_health
from backend.health.shared_look import SharedLook
from backend.logs import first_line
from backend.moments import moment_of
from backend.problems import FieldError, Problem
from backend.queue import ROUNDS_QUEUE, Queue
from backend.schema_version import head_revision, revision_of
from backend.settings import Settings

PATIENCE_SECONDS = 5.0
log = logging.getLogger(__name__)


class NotReady(Problem):
    """Something that Maat needs is missing: each error names it."""

    remedy = "Do what `errors` says of each, then ask again."
    slug, title, status = "not-ready", "Not ready", 503
    retryable = True


@dataclass(frozen=True)
class Lack:
    """Something that is missing. `what`: database, schema, broker, worker, rounds or disk."""

    what: str
    message: str
    remedy: str


WHAT = ("database", "schema", "broker", "worker", "rounds", "disk")
_SLOW = Lack(
    "database",
    f"The checks took more than {PATIENCE_SECONDS:g} s.",
    "See whether the database is overloaded, or a transaction holds a lock.",
)


class Readiness:
    """Runs one check at a time: callers during a check share its result."""

    def __init__(self, settings: Settings, queue: Queue, integrity: Integrity) -> None:
        self._settings, self._queue, self._integrity = settings, queue, integrity
        self._looking = SharedLook(settings, self._look)

    async def check(self) -> None:
        """Return if all is there. Raises NotReady naming what is missing."""
        try:
            lacks = await self._looking.result(patience=PATIENCE_SECONDS)
        except TimeoutError:
            lacks = [_SLOW]
        if lacks:
            raise NotReady(
                " ".join(lack.message for lack in lacks),
                errors=[
                    FieldError(f"/{lack.what}", "missing", lack.message, lack.remedy)
                    for lack in lacks
                ],
                headers={"Retry-After": "5"},
            )

    def close(self) -> None:
        self._looking.close()

    def _look(self, database: Database) -> list[Lack]:
        return [*self._of_database(database), *self._of_broker(), *self._of_disk()]

    def _of_database(self, database: Database) -> Iterator[Lack]:
        try:
            with database.session_scope(writes=False) as session:
                found = _first(session, (_schema, self._worker, self._rounds))
        except SQLAlchemyError as error:
            if isinstance(error, DBAPIError) and is_damage(error.orig):
                yield _damaged(first_line(error.orig or error))
                return
            log.warning("the database cannot be used: %s", type(error).__name__)
            remedy = "See whether it runs, and whether MAAT_DATABASE_URL names it."
            yield Lack("database", "The database does not answer.", remedy)
            return
        fault = self._integrity.fault()
        if fault is None:
            yield from found
        else:  # what else is missing may follow from it
            yield _damaged(fault)

    def _worker(self, session: Session) -> Lack | None:
        now, stale = moment_of(session).wall, self._settings.worker_stale_seconds
        rows = session.exec(select(WorkerHeartbeat).order_by(col(WorkerHeartbeat.at).desc())).all()
        last = next((row for row in rows if ROUNDS_QUEUE in row.queues), None)
        age = None if last is None else abs((now - last.at).total_seconds())
        if age is not None and age <= stale:
            return None
        silent = "has ever shown life" if age is None else f"has shown life for {age:.0f} s"
        remedy = "Start one: celery -A worker.app worker -Q rounds; its log says why it ended."
        return Lack("worker", f"No worker of the queue {ROUNDS_QUEUE} {silent}.", remedy)

    def _rounds(self, session: Session) -> Lack | None:
        stale = self._settings.worker_stale_seconds
        found = worker_health(session, utc_now(), stale_seconds=stale)
        if found["state"] != "stale":
            return None
        remedy = "See whether the beat runs and the worker's log; a paused cluster needs none."
        return Lack("rounds", "Rounds of a cluster are overdue.", remedy)

    def _of_broker(self) -> Iterator[Lack]:
        try:
            self._queue.waiting()
        except (BrokerAway, OSError) as error:
            log.warning("the broker cannot be used: %s", type(error).__name__)
            remedy = "See whether it runs, and whether MAAT_BROKER_URL names it. Nothing is lost."
            yield Lack("broker", "The broker does not answer.", remedy)

    def _of_disk(self) -> Iterator[Lack]:
        folder = self._settings.data_path
        problem = disk_problem(folder, least_free_bytes=self._settings.least_free_bytes)
        if problem is not None:
            remedy = "Make room there, or set MAAT_DATA_DIR or MAAT_LEAST_FREE_BYTES."
            yield Lack("disk", problem, remedy)


def _damaged(fault: str) -> Lack:
    return Lack("database", f"The database is damaged ({fault}).", REMEDY)


def _first(session: Session, checks: tuple[Callable[[Session], Lack | None], ...]) -> list[Lack]:
    """Return what the checks miss; the rest means nothing where the schema is another."""
    found: list[Lack] = []
    for check in checks:
        lack = check(session)
        if lack is not None:
            found.append(lack)
            if lack.what == "schema":
                break
    return found


def _schema(session: Session) -> Lack | None:
    head = head_revision()
    present = revision_of(session.connection())
    if present == head:
        return None
    remedy = (
        "Stop all processes and run `make migrate`."
        if present is None or present < head
        else "Run the newer version of Maat that wrote it."
    )
    message = f"The database has the schema {present or 'of no version'}, and this version {head}."
    return Lack("schema", message, remedy)
