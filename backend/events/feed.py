"""What changed since a position. Sends nothing.

Rounds and job events are ordered by their ids, operations by the moment of their change. A position
is a text such as `r120.j4511.o1795175000000`; it is the event's id, so that a stream resumes where
it broke off. No change is left out; after a break a change may be repeated.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col, func, select

from backend.accounts.identity import Principal
from backend.clocktime import utc_now
from backend.jobs.models import Job, JobEvent
from backend.operations.models import Operation
from backend.rounds.models import Round

TOPICS = ("rounds", "jobs", "operations")
EVERYTHING = frozenset(TOPICS)
MOST_ROWS = 500
GAP_SECONDS = 2.0
_OVERLAP = timedelta(seconds=2)
_REPEATED = timedelta(days=1)  # more than a clock is ever set back
_CLOCKS_APART_MS = 3_600_000  # a worker stamps an operation, and its clock may be ahead
_POSITION = re.compile(r"r([0-9]{1,18})\.j([0-9]{1,18})\.o([0-9]{1,15})")
_LAST_MS = 253_370_764_800_000  # 9999-01-01: leaves room below the largest date for additions


@dataclass(frozen=True)
class Position:
    """The last round and job event sent (row ids), and the time of operations sent."""

    round_id: int = 0
    job_event_id: int = 0
    operations_ms: int = 0

    def with_later(self, other: Position) -> Position:
        """Return the position that is behind both."""
        return Position(
            max(self.round_id, other.round_id),
            max(self.job_event_id, other.job_event_id),
            max(self.operations_ms, other.operations_ms),
        )

    def __str__(self) -> str:
        return f"r{self.round_id}.j{self.job_event_id}.o{self.operations_ms}"

    @classmethod
    def parse(cls, text: str) -> Position | None:
        match = _POSITION.fullmatch(text)
        found = None if match is None else cls(*map(int, match.groups()))
        return found if found is not None and found.operations_ms < _LAST_MS else None


@dataclass(frozen=True)
class Change:
    """A change: its topic, the ids to fetch, the position after it, and whose it is.

    `tenant_id`: None for what every tenant may know.
    """

    topic: str
    data: dict[str, Any]
    position: Position
    tenant_id: str | None = None

    def is_for(self, topics: frozenset[str], reader: Principal | None) -> bool:
        """Return whether a reader of these topics is told. None: the process itself, always."""
        if self.topic not in topics:
            return False
        return reader is None or self.tenant_id is None or reader.may_see(self.tenant_id)

    def is_after(self, position: Position) -> bool:
        """Return whether a reader at this position is still to be told; operations always are."""
        if self.topic == "rounds":
            return self.position.round_id > position.round_id
        if self.topic == "jobs":
            return self.position.job_event_id > position.job_event_id
        return True


@dataclass
class GapWatch:
    """Waits for gaps in row ids: a transaction may commit a lower id later.

    It waits at a gap for at most GAP_SECONDS.
    """

    seen_at: dict[int, float] = field(default_factory=dict)

    def settled(self, ids: Sequence[int], last: int, now: float) -> int:
        """Return how many of the ascending `ids` can be sent without skipping a late one.

        `last`: the id sent last.
        """
        for count, found in enumerate(ids):
            if found != last + 1 and now - self.seen_at.setdefault(found, now) < GAP_SECONDS:
                return count
            self.seen_at.pop(found, None)
            last = found
        return len(ids)


class Feed:
    """The changes that one reader has not received yet. `principal`: None sees all of them."""

    def __init__(
        self, position: Position, topics: frozenset[str], principal: Principal | None
    ) -> None:
        self.position = position
        self._topics, self._principal = topics, principal
        self._rounds, self._jobs = GapWatch(), GapWatch()
        self._operations: dict[str, datetime] = {}

    def advance(self, session: Session) -> list[Change]:
        """Return the new changes in order and move the position behind them."""
        changes = [
            *self._new_rounds(session),
            *self._new_job_events(session),
            *self._changed_operations(session),
        ]
        return [change for change in changes if change.is_for(self._topics, self._principal)]

    def _new_rounds(self, session: Session) -> Iterator[Change]:
        columns = (col(Round.id), col(Round.cluster_id), col(Round.number))
        rows: Sequence[Any] = session.execute(
            sa.select(*columns)
            .where(col(Round.id) > self.position.round_id)
            .order_by(col(Round.id))
            .limit(MOST_ROWS)
        ).all()
        count = self._rounds.settled(
            [row[0] for row in rows], self.position.round_id, time.monotonic()
        )
        for row_id, cluster_id, number in rows[:count]:
            self.position = replace(self.position, round_id=row_id)
            yield Change("rounds", {"cluster_id": cluster_id, "number": number}, self.position)

    def _new_job_events(self, session: Session) -> Iterator[Change]:
        event = (col(JobEvent.id), col(JobEvent.job_id), col(JobEvent.kind), col(JobEvent.state))
        statement = sa.select(*event, col(Job.tenant_id), col(Job.cluster_id))
        joined = statement.join(Job, col(Job.id) == col(JobEvent.job_id)).where(
            col(JobEvent.id) > self.position.job_event_id
        )
        rows: Sequence[Any] = session.execute(
            joined.order_by(col(JobEvent.id)).limit(MOST_ROWS)
        ).all()
        count = self._jobs.settled(
            [row[0] for row in rows], self.position.job_event_id, time.monotonic()
        )
        for row_id, job_id, kind, state, tenant_id, cluster_id in rows[:count]:
            self.position = replace(self.position, job_event_id=row_id)
            data = {"job_id": job_id, "cluster_id": cluster_id, "kind": kind, "state": state}
            yield Change("jobs", data, self.position, tenant_id)

    def _changed_operations(self, session: Session) -> Iterator[Change]:
        now = utc_now()
        self.position = _not_in_the_future(self.position, now)
        since = datetime.fromtimestamp(self.position.operations_ms / 1000, UTC) - _OVERLAP
        statement = (
            select(Operation)
            .where(col(Operation.updated_at) >= since)
            .order_by(col(Operation.updated_at))
            .limit(MOST_ROWS)
        )
        for operation in session.exec(statement):
            if self._operations.get(operation.id) == operation.updated_at:
                continue
            self._operations[operation.id] = operation.updated_at
            at = _milliseconds(min(operation.updated_at, now + _OVERLAP))
            self.position = replace(
                self.position, operations_ms=max(self.position.operations_ms, at)
            )
            data = {
                "operation_id": operation.id,
                "state": operation.state,
                "done": operation.done,
                "total": operation.total,
            }
            yield Change("operations", data, self.position, operation.tenant_id)
        self._operations = {key: at for key, at in self._operations.items() if at >= since}


def present_position(session: Session) -> Position:
    """Return the position for a reader who wants only future changes."""
    last_round = session.exec(select(func.max(Round.id))).one()
    last_event = session.exec(select(func.max(JobEvent.id))).one()
    return Position(last_round or 0, last_event or 0, _milliseconds(utc_now() + _OVERLAP))


def begin_at(session: Session, last_event_id: str) -> Position | None:
    """Return the position where a returning reader resumes.

    Returns None if the id is not of this stream. A stream at a future position would stay silent
    until it is reached, and a browser would ask with the same id again and again.
    """
    wanted, here = Position.parse(last_event_id), present_position(session)
    if wanted is None or wanted.round_id > here.round_id or wanted.job_event_id > here.job_event_id:
        return None
    return wanted if wanted.operations_ms <= here.operations_ms + _CLOCKS_APART_MS else None


def _not_in_the_future(position: Position, now: datetime) -> Position:
    """Move a future position back by a day, so that recent operations are sent again.

    Such a position was given before the clock was set back by an unknown amount.
    """
    if position.operations_ms <= _milliseconds(now + 2 * _OVERLAP):
        return position
    return replace(position, operations_ms=_milliseconds(now - _REPEATED))


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
