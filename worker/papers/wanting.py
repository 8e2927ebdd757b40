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
from worker.laboratory.work import LIVE
from worker.work_queue import WorkQueue

RUNS = WorkQueue(PaperRun, key=col(PaperRun.key))


def live() -> tuple[Any, ...]:
    """Select operations that have not ended and that nobody cancelled."""
    return col(Operation.state).in_(LIVE), col(Operation.cancel_requested).is_(False)


def with_runs() -> Any:
    """Join the runs of items with their reproductions and operations."""
    joined = sa.join(
        ReproducedRun, ReproducedItem, col(ReproducedItem.id) == col(ReproducedRun.item_id)
    )
    for table, on in (
        (Reproduction, col(Reproduction.id) == col(ReproducedItem.reproduction_id)),
        (Operation, col(Operation.id) == col(Reproduction.operation_id)),
    ):
        joined = sa.join(joined, table, on)
    return joined


def waiting() -> tuple[Any, ...]:
    """Select items that wait for runs."""
    return *live(), col(ReproducedItem.state).not_in(ENDED)


def wanting(*columns: Any) -> Any:
    """Select of items that wait for runs, with their reproductions and runs."""
    return select(*columns).select_from(with_runs()).where(*waiting())


def is_wanted(database: Database, key: str) -> bool:
    """Return whether an item of a reproduction that is not cancelled waits for this run."""
    with database.session_scope(writes=False) as session:
        found = wanting(col(ReproducedRun.run_key)).where(col(ReproducedRun.run_key) == key)
        return session.exec(found.limit(1)).first() is not None


def drop_unwanted(session: Session) -> None:
    """Cancel the runs that no reproduction waits for and that no worker plays."""
    waiting = col(PaperRun.state) == OperationState.QUEUED
    RUNS.drop(session, waiting, col(PaperRun.key).not_in(wanting(col(ReproducedRun.run_key))))
