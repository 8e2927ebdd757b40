"""Requests to work rho out again: their progress, their end, and their cancellation."""

from __future__ import annotations

import sqlalchemy as sa
from sqlmodel import Session, col, select

from backend.database import Database
from backend.fairness.models import settled_state
from backend.fairness.requests import KIND
from backend.models import JobFairness, Operation, OperationState
from worker.operations import OPERATIONS, finish
from worker.work_queue import Claim

_OPEN = col(JobFairness.state).in_((OperationState.QUEUED, OperationState.RUNNING))


def settle(database: Database) -> None:
    """Bring every live request up to its rows: progress, end or cancellation."""
    live = (Operation.kind == KIND, col(Operation.state) == OperationState.RUNNING)
    with database.session_scope(writes=False) as session:
        found = session.exec(select(Operation.id).where(*live)).all()
        moved = [one for one in found if _has_moved(session, one)]
    for operation_id in moved:
        with database.session_scope() as session:
            _settle(session, operation_id)


def _open_rows(session: Session, operation_id: str) -> int:
    mine = (JobFairness.operation_id == operation_id, _OPEN)
    return session.exec(select(sa.func.count()).select_from(JobFairness).where(*mine)).one()


def _has_moved(session: Session, operation_id: str) -> bool:
    operation = session.get_one(Operation, operation_id)
    left = _open_rows(session, operation_id)
    return operation.cancel_requested or operation.total - left != operation.done or left == 0


def _settle(session: Session, operation_id: str) -> None:
    operation = session.get_one(Operation, operation_id, with_for_update=True)
    if operation.cancel_requested:
        _leave_the_rest(session, operation_id)
    left = _open_rows(session, operation_id)
    done = operation.total - left
    message = f"{done:.0f} of {operation.total:.0f} jobs worked out."
    OPERATIONS.beat(session, Claim(operation_id), done=done, message=message)
    if left == 0:
        state = OperationState.CANCELLED if operation.cancel_requested else OperationState.SUCCEEDED
        finish(session, operation_id, state, message=message)


def _leave_the_rest(session: Session, operation_id: str) -> None:
    """Take back what no worker has begun: each job keeps what was known of it."""
    mine = (
        col(JobFairness.operation_id) == operation_id,
        col(JobFairness.state) == OperationState.QUEUED,
    )
    for row in session.exec(select(JobFairness).where(*mine).with_for_update()):
        row.state = settled_state(row.reason)
        session.add(row)
    session.flush()
