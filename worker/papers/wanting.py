"""Which reproductions still want which runs."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col, select

from backend.database import Database
from backend.models import (
    Operation,
    OperationState,
    PaperRun,
    ReproducedItem,
    ReproducedRun,
    Reproduction,
)
from backend.operations.models import ENDED
from worker.work_queue import WorkQueue

LIVE = (OperationState.QUEUED.value, OperationState.RUNNING.value)
RUNS = WorkQueue(PaperRun, key=col(PaperRun.key))


def live() -> tuple[Any, ...]:
    """Select operations that have not ended and that nobody cancelled."""
    return col(Operation.state).in_(LIVE), col(Operation.cancel_requested).is_(False)


def wanting(*columns: Any) -> Any:
    """Select of items that wait for runs, with their reproductions and runs."""
    joined = (
        select(*columns)
        .select_from(ReproducedRun)
        .join(ReproducedItem, col(ReproducedItem.id) == col(ReproducedRun.item_id))
        .join(Reproduction, col(Reproduction.id) == col(ReproducedItem.reproduction_id))
        .join(Operation, col(Operation.id) == col(Reproduction.operation_id))
    )
    return joined.where(*live(), col(ReproducedItem.state).not_in(ENDED))


def is_wanted(database: Database, key: str) -> bool:
    """Return whether an item of a reproduction that is not cancelled waits for this run."""
    with database.session_scope(writes=False) as session:
        found = wanting(col(ReproducedRun.run_key)).where(col(ReproducedRun.run_key) == key)
        return session.exec(found.limit(1)).first() is not None


def drop_unwanted(session: Session) -> None:
    """Cancel the runs that no reproduction waits for and that no worker plays."""
    waiting = col(PaperRun.state) == OperationState.QUEUED
    RUNS.drop(session, waiting, col(PaperRun.key).not_in(wanting(col(ReproducedRun.run_key))))


def unsent() -> sa.ColumnElement[bool]:
    """Select runs of which no message was sent, and those dropped before they were wanted again."""
    queued = (col(PaperRun.state) == OperationState.QUEUED) & col(PaperRun.heartbeat_at).is_(None)
    return queued | (col(PaperRun.state) == OperationState.CANCELLED)
