"""Sums up months from their days, once all of these were summed up: so that years are read quickly.

Commits nothing. Days that were summed up change no more, so neither do their months.
"""

from __future__ import annotations

from calendar import monthrange
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import date, timedelta
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col

from backend.usage.models import ALL_TENANTS, UsageDay, UsageMonth
from backend.usage.repository import summed_days
from backend.usage.tally import PARTS, Dimension

_KEY = ("dimension", "tenant_id", "name", "gpu_type")


def whole_months(days: Iterable[date]) -> Sequence[date]:
    """Return the months of which there is every day, each as its first day, in order."""
    found = Counter(day.replace(day=1) for day in days)
    return [month for month, days in sorted(found.items()) if days == _length(month)]


def days_outside(days: Iterable[date], months: Collection[date]) -> list[date]:
    """Return the days that are in none of these months."""
    return [day for day in days if day.replace(day=1) not in months]


def months_to_sum(session: Session, cluster_id: str) -> Sequence[date]:
    """Return the months whose days were all summed up and that were not, in order."""
    done = summed_months(session, cluster_id)
    return [one for one in whole_months(summed_days(session, cluster_id)) if one not in done]


def summed_months(session: Session, cluster_id: str) -> set[date]:
    """Return the months that were summed up. One without any use is not: it has no rows."""
    mine = (
        col(UsageMonth.cluster_id) == cluster_id,
        col(UsageMonth.dimension) == Dimension.MODEL.value,
        col(UsageMonth.tenant_id) == ALL_TENANTS,
    )
    return set(session.scalars(sa.select(col(UsageMonth.month)).where(*mine).distinct()))


def rows_of_month(session: Session, cluster_id: str, month: date) -> list[dict[str, Any]]:
    """Return the rows of a month, in the order of their key."""
    key = [col(getattr(UsageDay, name)) for name in _KEY]
    last = month + timedelta(days=_length(month) - 1)
    statement = sa.select(*key, *(sa.func.sum(col(getattr(UsageDay, part))) for part in PARTS))
    mine = (col(UsageDay.cluster_id) == cluster_id, col(UsageDay.day).between(month, last))
    found = session.connection().execute(statement.where(*mine).group_by(*key)).all()
    names, of_all = (*_KEY, *PARTS), {"cluster_id": cluster_id, "month": month}
    rows = [of_all | dict(zip(names, _whole(row), strict=True)) for row in found]
    return sorted(rows, key=lambda row: [row[name] for name in _KEY])


def store_month(session: Session, rows: list[dict[str, Any]]) -> None:
    """Store the rows of a month. Raises IntegrityError if another process has done so."""
    if rows:
        session.connection().execute(sa.insert(UsageMonth), rows)


def _whole(row: Sequence[Any]) -> list[Any]:
    """Return a row with whole numbers: PostgreSQL sums them to decimals."""
    return [*row[: len(_KEY)], *map(int, row[len(_KEY) :])]


def _length(month: date) -> int:
    return monthrange(month.year, month.month)[1]
