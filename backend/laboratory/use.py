"""What each tenant has computed in the laboratory: charged by workers, hour by hour."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlmodel import Session, col

from backend.laboratory.models import LaboratoryUse
from backend.operations.models import Operation

HOUR = timedelta(hours=1)
WINDOW = timedelta(hours=24)
HALF_LIFE_HOURS = 1.0
"""What a tenant used this long ago counts half when workers choose whose run is next."""


def charge(session: Session, operation_id: str, seconds: float, *, now: datetime) -> None:
    """Add CPU seconds to an operation, and to the hour of its tenant."""
    mine = col(Operation.id) == operation_id
    added = sa.update(Operation).where(mine).values(cpu_seconds=Operation.cpu_seconds + seconds)
    owner = session.execute(
        added.returning(col(Operation.tenant_id), col(Operation.kind)),
        execution_options={"synchronize_session": False},
    ).first()
    if owner is None:
        return
    insert = sqlite.insert if session.get_bind().dialect.name == "sqlite" else postgresql.insert
    row = insert(LaboratoryUse).values(
        tenant_id=owner[0], kind=owner[1], hour=hour_of(now), cpu_seconds=seconds
    )
    session.execute(
        row.on_conflict_do_update(
            index_elements=["tenant_id", "kind", "hour"],
            set_={"cpu_seconds": LaboratoryUse.cpu_seconds + row.excluded.cpu_seconds},
        )
    )


def hour_of(moment: datetime) -> datetime:
    """Return the beginning of an hour."""
    return moment.replace(minute=0, second=0, microsecond=0)


def lately_used(session: Session, *, now: datetime) -> Mapping[str, float]:
    """Return the CPU seconds of each tenant in the window, those of earlier hours as fewer."""
    used: dict[str, float] = defaultdict(float)
    by_hour = col(LaboratoryUse.tenant_id), col(LaboratoryUse.hour)
    total = sa.func.sum(LaboratoryUse.cpu_seconds)
    statement = sa.select(*by_hour, total).where(_in_window(now)).group_by(*by_hour)
    for tenant_id, hour, seconds in session.execute(statement):
        hours = max((hour_of(now) - hour) / HOUR, 0.0)
        used[tenant_id] += seconds * 0.5 ** (hours / HALF_LIFE_HOURS)
    return used


def forget_use(session: Session, tenant_id: str) -> None:
    """Delete what was charged to a tenant."""
    mine = col(LaboratoryUse.tenant_id) == tenant_id
    session.execute(sa.delete(LaboratoryUse).where(mine))


def forget_old_use(session: Session, *, before: datetime) -> None:
    """Delete what was charged in earlier hours."""
    session.execute(sa.delete(LaboratoryUse).where(col(LaboratoryUse.hour) < before))


def _in_window(now: datetime) -> sa.ColumnElement[bool]:
    return col(LaboratoryUse.hour) > now - WINDOW
