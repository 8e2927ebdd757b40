"""Work that waits in the laboratory, and whose is next.

Workers take one run at a time, of the tenant that has used the least CPU lately for its weight. Of
a tenant's own requests the one that has had the least goes first, so that a small one is not held
up by a large one; what a dead worker left goes before both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col

from backend.clocktime import utc_now
from backend.laboratory.use import lately_used
from backend.models import Operation, OperationState
from backend.quotas.repository import tenant_weights
from worker.work_queue import WorkQueue

LIVE = (OperationState.QUEUED.value, OperationState.RUNNING.value)


@dataclass(frozen=True)
class Work:
    """What is left to do of one operation.

    `waiting`: how many runs have no worker; `left`: how many of them a worker began that died;
    `played`: how many have a living worker. `cpu_seconds`: what it has had.
    """

    kind: str
    operation_id: str
    tenant_id: str
    created_at: datetime
    cpu_seconds: float
    waiting: int
    left: int
    played: int


def work_of(
    session: Session,
    kind: str,
    runs: WorkQueue[Any],
    joined: sa.FromClause,
    *where: sa.ColumnElement[bool],
) -> list[Work]:
    """Return the operations that have such parts to play. `joined`: operations with their runs."""
    about = (
        col(Operation.id),
        col(Operation.tenant_id),
        col(Operation.created_at),
        col(Operation.cpu_seconds),
    )
    counts = (sa.func.sum(sa.case((each, 1), else_=0)) for each in runs.standings(utc_now()))
    statement = (
        sa.select(*about, *counts)
        .select_from(joined)
        .where(col(Operation.state).in_(LIVE), runs.has_not_ended(), *where)
        .group_by(*about)
    )
    return [Work(kind, *row) for row in session.execute(statement)]


def next_of(session: Session, work: Iterable[Work]) -> list[Work]:
    """Order what waits by what tenants have used lately, and by their weights now."""
    return in_turn(work, lately_used(session, now=utc_now()), tenant_weights(session))


def in_turn(
    work: Iterable[Work], used: Mapping[str, float], weights: Mapping[str, float]
) -> list[Work]:
    """Order what waits: the tenant with the least use for its weight first.

    `used`: CPU seconds of late, by tenant; `weights`: of those that have another weight than 1.
    """

    def rank(one: Work) -> tuple[float, bool, float, datetime, str]:
        share = used.get(one.tenant_id, 0.0) / weights.get(one.tenant_id, 1.0)
        return share, not one.left, one.cpu_seconds, one.created_at, one.operation_id

    return sorted((one for one in work if one.waiting), key=rank)
