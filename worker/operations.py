"""Operations: long work in parts, shared by workers. Knows no simulation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlmodel import Session, col, select

from backend.clocktime import utc_now
from backend.database import Database
from backend.models import Operation, OperationState
from worker.work_queue import Claim, WorkQueue

OPERATIONS = WorkQueue(Operation, key=col(Operation.id))


def join(database: Database, operation_id: str) -> bool:
    """Join the work on an operation; return False if it has ended."""
    with database.session_scope() as session:
        return OPERATIONS.join(session, operation_id) is not None


def waiting_operations(database: Database, *, kind: str) -> list[str]:
    """Return operations without a worker, and mark them as sent.

    They are queued and not sent recently, or their worker has died.
    """
    return OPERATIONS.send_again(database, col(Operation.kind) == kind, returning=col(Operation.id))


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
    OPERATIONS.settle(
        session, Claim(operation_id), state, message=message, error=error, heartbeat_at=utc_now()
    )


def count_of(parts: str, states: Sequence[str]) -> str:
    """Return how many parts are in each state, in words."""
    counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
    return f"{parts}: {counts}."
