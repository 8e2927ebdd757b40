"""Which rows of work may be taken: those queued, and those whose worker is gone. One shape for operations, runs and points of sweeps."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col

from backend.models import Operation, OperationState, SimulationRun, SweepPoint

STALE_SECONDS = 20.0  # no sign of life for this long: its worker is gone
SEND_AGAIN_SECONDS = (
    60.0  # a message that waits longer than this behind other work is sent once more
)
AHEAD_SECONDS = 20.0  # no clock is so far ahead of another: a sign of life from later than this was given before the clock was set back

Claimed = (
    type[Operation] | type[SimulationRun] | type[SweepPoint]
)  # tables with `state` and `heartbeat_at`


def unsent(table: Claimed, now: datetime) -> sa.ColumnElement[bool]:
    """Queued, and its message is older than it should be."""
    return sa.and_(
        col(table.state) == OperationState.QUEUED, _silent(table, now, seconds=SEND_AGAIN_SECONDS)
    )


def gone(table: Claimed, now: datetime) -> sa.ColumnElement[bool]:
    """Running, and its worker has said nothing for too long."""
    return sa.and_(
        col(table.state) == OperationState.RUNNING, _silent(table, now, seconds=STALE_SECONDS)
    )


def free(table: Claimed, now: datetime) -> sa.ColumnElement[bool]:
    """Nobody is at it."""
    return sa.or_(col(table.state) == OperationState.QUEUED, gone(table, now))


def take(
    session: Session, table: Claimed, row: sa.ColumnElement[bool], *, now: datetime, **values: Any
) -> bool:
    """Whether this row was free, and is the caller's now: of two workers that ask at once, one gets it."""
    begun = {"state": OperationState.RUNNING, "started_at": now, "heartbeat_at": now} | values
    return (
        session.connection()
        .execute(sa.update(table).where(row, free(table, now)).values(**begun))
        .rowcount
        == 1
    )


def _silent(table: Claimed, now: datetime, *, seconds: float) -> sa.ColumnElement[bool]:
    """No sign of life for so long. One of the future tells nothing: who lives gives the next one in the present."""
    heard, ahead = col(table.heartbeat_at), now + timedelta(seconds=AHEAD_SECONDS)
    return sa.or_(heard.is_(None), heard < now - timedelta(seconds=seconds), heard > ahead)
