"""Rows of a table as a queue of work; a message is only a hint that there may be some.

A worker claims a row, shows life while it works on it, and settles it if the row is still its own.
A row whose worker shows no life is sent again and claimed by another one. Knows no work and no
broker.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

import sqlalchemy as sa
from sqlalchemy.orm import Mapped
from sqlmodel import Session, col

from backend.clocktime import utc_now
from backend.database import Database
from backend.models import (
    ClusterForecast,
    JobFairness,
    Operation,
    OperationState,
    PaperRun,
    ReportDelivery,
    ReproducedItem,
    SimulationRun,
    SweepPoint,
    WebhookDelivery,
)

log = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 5.0
STALE_SECONDS = 20.0  # a worker without a heartbeat for this long has died
SEND_AGAIN_SECONDS = 60.0  # a message that has waited this long behind other work is sent again
# No clock is this far ahead of another: a heartbeat from later than this is from before the clock
# was set back.
AHEAD_SECONDS = 20.0

Condition = sa.ColumnElement[bool]
Row = TypeVar(
    "Row",
    ClusterForecast,
    JobFairness,
    Operation,
    PaperRun,
    ReportDelivery,
    ReproducedItem,
    SimulationRun,
    SweepPoint,
    WebhookDelivery,
)


@dataclass(frozen=True)
class Claim:
    """The right to work on a row.

    `since`: its `started_at` when one worker has it alone; None if several workers share the row.
    """

    key: str
    since: datetime | None = None


class WorkQueue(Generic[Row]):
    """The rows of one table: claims, heartbeats, ends, and messages to send again."""

    def __init__(self, table: type[Row], *, key: Mapped[str]) -> None:
        self._table: type[Row] = table
        self._key = key

    def claim_next(
        self,
        session: Session,
        *where: Condition,
        order: Mapped[int] | Mapped[str] | None = None,
        **values: object,
    ) -> Claim | None:
        """Claim the first row that no worker works on; return None if there is none.

        Of two workers that ask at once, one gets the row. `values`: what else to write into it.
        """
        now, connection = utc_now(), session.connection()
        first = sa.select(self._key).where(*where, self._claimable(now)).order_by(order).limit(1)
        first = first.with_for_update(skip_locked=True)  # of PostgreSQL; SQLite has one writer
        begun = {"state": OperationState.RUNNING, "started_at": now, "heartbeat_at": now} | values
        while (key := connection.execute(first).scalar()) is not None:
            if self._update(session, self._key == key, self._claimable(now), **begun):
                return Claim(key, since=now)
        return None

    def claim_some(
        self, session: Session, *where: Condition, order: sa.ColumnElement[Any], most: int
    ) -> list[Claim]:
        """Claim up to `most` rows that no worker works on, the first of this order."""
        now, connection = utc_now(), session.connection()
        first = sa.select(self._key).where(*where, self._claimable(now)).order_by(order).limit(most)
        keys = connection.execute(first).scalars().all()
        claimed = (
            sa.update(self._table)
            .where(self._key.in_(keys), self._claimable(now))
            .values(state=OperationState.RUNNING, started_at=now, heartbeat_at=now)
            .returning(self._key)
        )
        got = set(connection.execute(claimed).scalars()) if keys else set()
        return [Claim(key, since=now) for key in keys if key in got]

    def give_back(self, session: Session, claim: Claim, **values: object) -> bool:
        """Queue a claimed row again, with `values`; return whether it was still ours."""
        return self._update(
            session, self._ours(claim), state=OperationState.QUEUED, heartbeat_at=None, **values
        )

    def waits(self, database: Database, *where: Condition) -> bool:
        """Return whether a row has no worker."""
        first = sa.select(self._key).where(*where, self._claimable(utc_now())).limit(1)
        with database.session_scope(writes=False) as session:
            return session.connection().execute(first).first() is not None

    def is_worked_on(self, session: Session, *where: Condition) -> bool:
        """Return whether a living worker works on one of these rows."""
        running = col(self._table.state) == OperationState.RUNNING
        first = sa.select(self._key).where(*where, running, ~self._stale(utc_now())).limit(1)
        return session.connection().execute(first).first() is not None

    def join(self, session: Session, key: str) -> Claim | None:
        """Share a row with other workers; return None if it has ended."""
        now = utc_now()
        live = col(self._table.state).in_((OperationState.QUEUED, OperationState.RUNNING))
        joined = self._update(
            session,
            self._key == key,
            live,
            state=OperationState.RUNNING,
            started_at=sa.func.coalesce(col(self._table.started_at), now),
            heartbeat_at=now,
        )
        return Claim(key) if joined else None

    @contextmanager
    def working_on(
        self,
        database: Database,
        claim: Claim,
        *,
        also: Callable[[Session], object] = lambda _: None,
    ) -> Iterator[None]:
        """Show life every few seconds while the block runs; `also` is called at each heartbeat."""

        def beat() -> None:
            with database.session_scope() as session:
                self.beat(session, claim)
                also(session)

        with beating(beat):
            yield

    def beat(self, session: Session, claim: Claim, **values: object) -> bool:
        """Show life, and write `values`; return whether the row is still ours."""
        return self._update(session, self._ours(claim), heartbeat_at=utc_now(), **values)

    def settle(
        self, session: Session, claim: Claim, state: OperationState, **values: object
    ) -> bool:
        """End the row with `values` if it is still ours; return whether it was."""
        return self._update(
            session, self._ours(claim), state=state, finished_at=utc_now(), **values
        )

    def drop(self, session: Session, *where: Condition) -> None:
        """Cancel the rows that no worker works on."""
        now = utc_now()
        self._update(
            session,
            *where,
            self._claimable(now),
            state=OperationState.CANCELLED,
            finished_at=now,
        )

    def send_again(
        self, database: Database, *where: Condition, returning: Mapped[str]
    ) -> list[str]:
        """Queue again what has no worker, and return a column of those rows: they count as sent.

        A row has none if its message is overdue or its worker has died.
        """
        now = utc_now()
        wanted = sa.and_(*where, self._overdue(now) | self._stale(now))
        first = sa.select(self._key).where(wanted).limit(1)
        # Most often there is nothing: find that out without the writer's lock.
        with database.session_scope(writes=False) as session:
            if session.connection().execute(first).first() is None:
                return []
        again = sa.update(self._table).where(wanted)
        with database.session_scope() as session:
            found = session.connection().execute(
                again.values(state=OperationState.QUEUED, heartbeat_at=now).returning(returning)
            )
            return sorted(found.scalars())

    def standings(self, now: datetime) -> tuple[Condition, Condition, Condition]:
        """Return what selects rows that wait, those of them that a dead worker left, and the rest.

        The rest: rows that a living worker is at.
        """
        running = col(self._table.state) == OperationState.RUNNING
        return self._claimable(now), self._stale(now), running & ~self._stale(now)

    def has_not_ended(self) -> Condition:
        """Select rows that wait or are worked on."""
        return col(self._table.state).in_((OperationState.QUEUED, OperationState.RUNNING))

    def _update(self, session: Session, *where: Condition, **values: object) -> bool:
        """Write values into rows; return whether there were any."""
        statement = sa.update(self._table).where(*where).values(**values)
        return session.connection().execute(statement).rowcount > 0

    def _ours(self, claim: Claim) -> Condition:
        """Select the row of a claim while it runs, unless another worker has claimed it since."""
        running = sa.and_(self._key == claim.key, col(self._table.state) == OperationState.RUNNING)
        if claim.since is None:
            return running
        return sa.and_(running, col(self._table.started_at) == claim.since)

    def _claimable(self, now: datetime) -> Condition:
        """Select rows that no worker works on."""
        return sa.or_(col(self._table.state) == OperationState.QUEUED, self._stale(now))

    def _overdue(self, now: datetime) -> Condition:
        """Select queued rows whose message is older than it should be."""
        queued = col(self._table.state) == OperationState.QUEUED
        return sa.and_(queued, self._silent(now, seconds=SEND_AGAIN_SECONDS))

    def _stale(self, now: datetime) -> Condition:
        """Select running rows whose worker has sent no heartbeat for too long."""
        running = col(self._table.state) == OperationState.RUNNING
        return sa.and_(running, self._silent(now, seconds=STALE_SECONDS))

    def _silent(self, now: datetime, *, seconds: float) -> Condition:
        """Select rows without a heartbeat for `seconds`.

        A heartbeat of the future does not count: a living worker soon sends one of the present.
        """
        heard, ahead = col(self._table.heartbeat_at), now + timedelta(seconds=AHEAD_SECONDS)
        return sa.or_(heard.is_(None), heard < now - timedelta(seconds=seconds), heard > ahead)


@contextmanager
def beating(beat: Callable[[], None]) -> Iterator[None]:
    """Call `beat` every few seconds from another thread while the block runs.

    A failed beat is logged, and the next one is tried.
    """
    done = threading.Event()

    def keep_on() -> None:
        while not done.wait(HEARTBEAT_SECONDS):
            try:
                beat()
            except Exception:
                log.exception("A heartbeat failed; the next one is in %.0f s.", HEARTBEAT_SECONDS)

    thread = threading.Thread(target=keep_on, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
