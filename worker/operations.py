"""Long work in the operations table: who may do it, that it is alive, how far it is, whether it shall stop. Knows no simulation.

The row is the queue: a message only says that it may be worth looking. One that is lost is sent again; one too many finds nothing to do.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col, select

from backend.clocktime import utc_now
from backend.database import Database
from backend.models import Operation, OperationState

HEARTBEAT_SECONDS = 5.0
STALE_SECONDS = 20.0  # no sign of life for this long: its worker is gone
SEND_AGAIN_SECONDS = 60.0  # a message that waits longer than this behind other work is sent once more
PROGRESS_SECONDS = 0.5


class StopRequested(Exception):
    """Somebody asked for the end of this operation."""


def claim(database: Database, operation_id: str) -> bool:
    """Take the operation: it was queued, or its worker is gone. False where there is nothing to do."""
    now = utc_now()
    gone = sa.and_(col(Operation.state) == OperationState.RUNNING, _silent_since(now - timedelta(seconds=STALE_SECONDS)))
    statement = (
        sa.update(Operation)
        .where(col(Operation.id) == operation_id, sa.or_(col(Operation.state) == OperationState.QUEUED, gone))
        .values(state=OperationState.RUNNING, heartbeat_at=now, updated_at=now, started_at=sa.func.coalesce(col(Operation.started_at), now))
    )
    with database.session_scope() as session:
        return session.connection().execute(statement).rowcount == 1


def waiting_operations(database: Database, *, kind: str) -> list[str]:
    """Operations that no worker is at: queued and not sent lately, or left by a worker that is gone. Marks them as sent."""
    now = utc_now()
    unsent = sa.and_(col(Operation.state) == OperationState.QUEUED, _silent_since(now - timedelta(seconds=SEND_AGAIN_SECONDS)))
    gone = sa.and_(col(Operation.state) == OperationState.RUNNING, _silent_since(now - timedelta(seconds=STALE_SECONDS)))
    wanted = sa.and_(col(Operation.kind) == kind, sa.or_(unsent, gone))
    with database.session_scope(writes=False) as session:
        if session.exec(select(Operation.id).where(wanted).limit(1)).first() is None:
            return []
    with database.session_scope() as session:
        found = session.connection().execute(
            sa.update(Operation)
            .where(wanted)
            .values(state=OperationState.QUEUED, heartbeat_at=now, updated_at=now)
            .returning(col(Operation.id))
        )
        return sorted(found.scalars())


@contextmanager
def alive(database: Database, operation_id: str) -> Iterator[None]:
    """Say every few seconds that this operation's worker lives, whatever the block is busy with."""
    with beating(lambda: _update(database, operation_id, heartbeat_at=utc_now())):
        yield


@contextmanager
def beating(beat: Callable[[], None]) -> Iterator[None]:
    """Call `beat` every few seconds from another thread while the block runs."""
    done = threading.Event()

    def keep_on() -> None:
        while not done.wait(HEARTBEAT_SECONDS):
            beat()

    thread = threading.Thread(target=keep_on, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


class Progress:
    """Tells how far an operation is, at most twice a second. Raises StopRequested where it shall stop."""

    def __init__(self, database: Database, operation_id: str) -> None:
        self._database, self._operation_id = database, operation_id
        self._next_at = 0.0

    def report(self, done: float, message: str) -> None:
        if time.monotonic() < self._next_at:
            return
        self._next_at = time.monotonic() + PROGRESS_SECONDS
        self.write(done, message)
        if is_cancel_requested(self._database, self._operation_id):
            raise StopRequested

    def write(self, done: float, message: str) -> None:
        _update(self._database, self._operation_id, done=done, message=message, heartbeat_at=utc_now())


def is_cancel_requested(database: Database, operation_id: str) -> bool:
    with database.session_scope(writes=False) as session:
        return bool(session.exec(select(Operation.cancel_requested).where(Operation.id == operation_id)).one())


def finish(session: Session, operation_id: str, state: OperationState, *, message: str, error: dict[str, Any] | None = None) -> None:
    """End a running operation; one that has ended stays as it is."""
    now = utc_now()
    mine = (col(Operation.id) == operation_id, col(Operation.state) == OperationState.RUNNING)
    values = {"state": state, "message": message, "error": error, "finished_at": now, "heartbeat_at": now, "updated_at": now}
    session.connection().execute(sa.update(Operation).where(*mine).values(**values))


def _silent_since(moment: object) -> sa.ColumnElement[bool]:
    return sa.or_(col(Operation.heartbeat_at).is_(None), col(Operation.heartbeat_at) < moment)


def _update(database: Database, operation_id: str, **values: Any) -> None:
    running = (col(Operation.id) == operation_id, col(Operation.state) == OperationState.RUNNING)
    with database.session_scope() as session:
        session.connection().execute(sa.update(Operation).where(*running).values(updated_at=utc_now(), **values))
