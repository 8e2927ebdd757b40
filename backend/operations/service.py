"""Begins and cancels operations. Commits nothing. The worker does the work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from sqlmodel import Session, col, select

from backend.accounts.identity import Principal
from backend.clocktime import utc_now
from backend.operations.models import ENDED, Operation, OperationState
from backend.problems import Conflict, Forbidden
from backend.tenancy import find_owned

Cancelled = Callable[[Session, Operation], None]

_WHEN_CANCELLED: dict[str, Cancelled] = {}


class Work(Protocol):
    """A row of long work, such as a simulation, with its operation."""

    id: str
    operation_id: str


def when_cancelled(kind: str, callback: Cancelled) -> None:
    """Call `callback` when a queued operation of this kind is cancelled."""
    _WHEN_CANCELLED[kind] = callback


def begin_operation(session: Session, operation: Operation, work: Work, *, result_url: str) -> None:
    """Store long work with its operation; both have one owner.

    `result_url`: the address of such work, without its id.
    """
    session.add(operation)
    session.flush()
    work.operation_id = operation.id
    session.add(work)
    session.flush()
    operation.result_url = f"{result_url}/{work.id}"


def operations_of(session: Session, works: Sequence[Work]) -> dict[str, Operation]:
    """Return the operations by the id of their work."""
    wanted = col(Operation.id).in_([work.operation_id for work in works])
    by_id = {operation.id: operation for operation in session.exec(select(Operation).where(wanted))}
    return {work.id: by_id[work.operation_id] for work in works}


def get_operation(
    session: Session, principal: Principal, operation_id: str, *, lock: bool = False
) -> Operation:
    """Find an operation. Raises NotFound for another tenant's operation too."""
    return find_owned(session, principal, Operation, operation_id, noun="operation", lock=lock)


def cancel_operation(session: Session, principal: Principal, operation_id: str) -> Operation:
    """Ask an operation to stop.

    A running one stops between two of its steps, a queued one at once. Repeating it changes
    nothing.
    """
    operation = get_operation(session, principal, operation_id, lock=True)
    if not principal.may_change(owner_id=operation.owner_id, tenant_id=operation.tenant_id):
        raise Forbidden(
            "The operation belongs to another user. "
            "Its owner, or a manager of its tenant, may cancel it."
        )
    if operation.state == OperationState.CANCELLED:
        return operation
    if operation.state in ENDED:
        raise Conflict(f"The operation has already ended: {operation.state}.")
    operation.cancel_requested = True
    if operation.state == OperationState.QUEUED:
        operation.state = OperationState.CANCELLED
        operation.finished_at = utc_now()
        operation.message = "Cancelled before it began."
        if operation.kind in _WHEN_CANCELLED:
            _WHEN_CANCELLED[operation.kind](session, operation)
    session.add(operation)
    session.flush()
    return operation
