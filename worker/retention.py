"""Deletes what is known of single jobs long after they ended: allocations, events, promises.

Sums by the day stay. Nothing is deleted of which a sum is still to be made.
"""

from __future__ import annotations

import math
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col, func, select

from backend.clocktime import cluster_seconds, shown_day
from backend.clusters.repository import all_clusters
from backend.database import Database
from backend.models import (
    AllocationReading,
    BatchChange,
    Cluster,
    ForecastPromise,
    Job,
    JobAllocation,
    JobEvent,
    ShareDay,
)
from backend.moments import moment_of
from backend.periods import period_of
from backend.settings import Settings
from backend.usage.days import settled_days
from backend.usage.raw import LATE_SECONDS
from backend.usage.repository import round_span

AT_ONCE = 500  # rows per transaction, to keep it short
_DAY = 86_400.0
_TIME: dict[Any, Any] = {
    JobAllocation: JobAllocation.to_seconds,
    AllocationReading: AllocationReading.at_seconds,
    BatchChange: BatchChange.at_seconds,
    JobEvent: JobEvent.cluster_seconds,
    ForecastPromise: ForecastPromise.made_seconds,
}
"""The time of a row: an index finds the oldest of a cluster by it."""


def forget_jobs(database: Database, settings: Settings) -> int:
    """Delete in portions, oldest first. Returns how many rows."""
    gone = 0
    with database.session_scope(writes=False) as session:
        clusters = all_clusters(session)
    for cluster in clusters:
        with database.session_scope(writes=False) as session:
            now = cluster_seconds(cluster, moment_of(session))
            summed = summed_until(session, cluster)
        spans = min(now - settings.keep_allocations_days * _DAY, summed)
        gone += _delete(database, JobAllocation, cluster.id, before=spans)
        gone += _delete(database, AllocationReading, cluster.id, before=spans)
        gone += _delete(database, BatchChange, cluster.id, before=spans)
        events = now - settings.keep_events_days * _DAY
        gone += _delete(database, JobEvent, cluster.id, before=events)
        gone += _delete(database, ForecastPromise, cluster.id, before=events)
    return gone


def summed_until(session: Session, cluster: Cluster) -> float:
    """Return the cluster second until which all sums are made: of use and of shares.

    Minus infinity if there are none. It is not after the oldest round: what rounds tell of a part
    of a day is read together with the allocations of that part.
    """
    kept = round_span(session, cluster.id)
    newest = select(func.max(ShareDay.day)).where(ShareDay.cluster_id == cluster.id)
    shares = session.exec(newest).one()
    if kept is None or shares is None:
        return -math.inf
    oldest, latest = kept
    to_do = settled_days(session, cluster)
    first_open = to_do[0] if to_do else shown_day(cluster, latest - LATE_SECONDS)
    of_use, _ = period_of(first_open).seconds(cluster)
    _, of_shares = period_of(shares).seconds(cluster)
    return min(oldest, of_use, of_shares)


def _delete(database: Database, table: Any, cluster_id: str, *, before: float) -> int:
    """Delete what lies before a time, of jobs that had ended by then; return how many rows."""
    if before <= 0:
        return 0
    key = sa.inspect(table).primary_key
    at = col(_TIME[table])
    portion = (
        sa.select(*key)
        .join(Job, col(Job.id) == col(table.job_id))
        .where(col(table.cluster_id) == cluster_id, at < before)
        .where(col(Job.finished_seconds) < before)
        .order_by(at)
        .limit(AT_ONCE)
    )
    gone = 0
    while True:
        with database.session_scope() as session:
            found = session.execute(portion).all()
            if found:
                rows = sa.tuple_(*key).in_([tuple(row) for row in found])
                session.execute(sa.delete(table).where(rows))
        gone += len(found)
        if len(found) < AT_ONCE:
            return gone
