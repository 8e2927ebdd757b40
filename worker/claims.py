"""Which rows of work a worker may claim.

They are queued, or their worker has died. Operations, runs and points of sweeps share these rules.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col

from backend.models import Operation, OperationState, SimulationRun, SweepPoint

STALE_SECONDS = 20.0  # a worker without a heartbeat for this long has died
SEND_AGAIN_SECONDS = 60.0  # a message that has waited this long behind other work is sent again
# No clock is this far ahead of another: a heartbeat from later than this is from before the clock
# was set back.
AHEAD_SECONDS = 20.0

# Tables with `state` and `heartbeat_at`.
Claimed = type[Operation] | type[SimulationRun] | type[SweepPoint]


def overdue(table: Claimed, now: datetime) -> sa.ColumnElement[bool]:
    """Select queued rows whose message is older than it should be."""
    return sa.and_(
        col(table.state) == OperationState.QUEUED, _silent(table, now, seconds=SEND_AGAIN_SECONDS)
    )


def stale(table: Claimed, now: datetime) -> sa.ColumnElement[bool]:
    """Select running rows whose worker has sent no heartbeat for too long."""
    return sa.and_(
        col(table.state) == OperationState.RUNNING, _silent(table, now, seconds=STALE_SECONDS)
    )


def claimable(table: Claimed, now: datetime) -> sa.ColumnElement[bool]:
    """Select rows that no worker is working on."""
    return sa.or_(col(table.state) == OperationState.QUEUED, stale(table, now))


def claim(
    session: Session, table: Claimed, row: sa.ColumnElement[bool], *, now: datetime, **values: Any
) -> bool:
    """Claim this row if it is claimable.

    Returns whether that succeeded; of two workers that ask at once, one gets the row.
    """
    begun = {"state": OperationState.RUNNING, "started_at": now, "heartbeat_at": now} | values
    return (
        session.connection()
        .execute(sa.update(table).where(row, claimable(table, now)).values(**begun))
        .rowcount
        == 1
    )


def _silent(table: Claimed, now: datetime, *, seconds: float) -> sa.ColumnElement[bool]:
    """Select rows without a heartbeat for `seconds`.

    A heartbeat of the future does not count: a living worker soon sends one of the present.
    """
    heard, ahead = col(table.heartbeat_at), now + timedelta(seconds=AHEAD_SECONDS)
    return sa.or_(heard.is_(None), heard < now - timedelta(seconds=seconds), heard > ahead)
