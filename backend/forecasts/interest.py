"""Who reads forecasts: of a cluster of which nobody has read any for minutes, none are made."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from weakref import WeakKeyDictionary

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Mapped
from sqlmodel import Session, col

from backend.clocktime import utc_now
from backend.database import Database, after_commit, database_of
from backend.forecasts.models import ForecastInterest

INTEREST_SECONDS = 180.0
"""For so long after somebody read forecasts of a cluster, they are made after its rounds."""
RENEW_SECONDS = 20.0
"""A process records so often that they are read: reading must hardly ever write."""
_RECORDED: WeakKeyDictionary[Database, dict[str, float]] = WeakKeyDictionary()


def record_interest(session: Session, cluster_ids: Iterable[str]) -> None:
    """Record that somebody reads forecasts of these clusters, once this transaction has ended.

    In a transaction of its own that never waits: if the database is busy, the next reader records.
    """
    database, now = database_of(session), time.monotonic()
    recorded = _RECORDED.setdefault(database, {})
    due = [one for one in set(cluster_ids) if now - recorded.get(one, -1e9) >= RENEW_SECONDS]
    if due:
        after_commit(session, lambda: _record(database, due))


def _record(database: Database, cluster_ids: list[str]) -> None:
    insert = sqlite.insert if database.is_sqlite else postgresql.insert
    with suppress(OperationalError):
        with database.session_scope(hasty=True) as session:
            now = utc_now()
            rows = insert(ForecastInterest).values(
                [{"cluster_id": i, "at": now} for i in cluster_ids]
            )
            latest = {"at": rows.excluded.at}
            session.execute(rows.on_conflict_do_update(index_elements=["cluster_id"], set_=latest))
        _RECORDED[database].update(dict.fromkeys(cluster_ids, time.monotonic()))


def is_of_interest(cluster_id: Mapped[str], now: datetime) -> sa.ColumnElement[bool]:
    """Return the condition that somebody has read forecasts of the cluster of late."""
    lately = col(ForecastInterest.at) > now - timedelta(seconds=INTEREST_SECONDS)
    return sa.exists().where(col(ForecastInterest.cluster_id) == cluster_id, lately)
