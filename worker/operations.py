"""Long work in the operations table: claims, heartbeats, progress, cancellation.

The row is the queue: a message only hints that there may be work. A lost message is sent again; a
superfluous one finds nothing to do. Knows no simulation.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col, select

from backend.clocktime import utc_now
from backend.database import Database
from backend.models import Operation, OperationState
from worker.claims import overdue, stale

log = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 5.0
PROGRESS_SECONDS = 0.5


def join(database: Database, operation_id: str) -> bool:
    """Join the work on an operation; return False if it has ended."""
    now = utc_now()
    live = col(Operation.state).in_((OperationState.QUEUED, OperationState.RUNNING))
    values = {"state": OperationState.RUNNING, "heartbeat_at": now, "updated_at": now}
    statement = sa.update(Operation).where(col(Operation.id) == operation_id, live)
    with database.session_scope() as session:
        started = sa.func.coalesce(col(Operation.started_at), now)
        return (
            session.connection().execute(statement.values(started_at=started, **values)).rowcount
            == 1
        )


def waiting_operations(database: Database, *, kind: str) -> list[str]:
    """Return operations without a worker, and mark them as sent.

    They are queued and not sent recently, or their worker has died.
    """
    now = utc_now()
    wanted = sa.and_(
        col(Operation.kind) == kind, sa.or_(overdue(Operation, now), stale(Operation, now))
    )
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


def is_cancel_requested(database: Database, operation_id: str) -> bool:
    with database.session_scope(writes=False) as session:
        return bool(
            session.exec(
                select(Operation.cancel_requested).where(Operation.id == operation_id)
            ).one()
        )


def finish(
    session: Session,
    operation_id: str,
    state: OperationState,
    *,
    message: str,
    error: dict[str, Any] | None = None,
) -> None:
    """End a running operation; one that has ended stays as it is."""
    now = utc_now()
    mine = (col(Operation.id) == operation_id, col(Operation.state) == OperationState.RUNNING)
    values = {
        "state": state,
        "message": message,
        "error": error,
        "finished_at": now,
        "heartbeat_at": now,
        "updated_at": now,
    }
    session.connection().execute(sa.update(Operation).where(*mine).values(**values))
