"""Keeps what is told of days that are over: the tenants' shares, and rho of the jobs that ended.

Shares outlast the rows they follow from; sums of rho make long periods fast to read.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from datetime import date, timedelta

from sqlalchemy.exc import IntegrityError
from sqlmodel import Session, func, select

from backend.clocktime import cluster_seconds, seconds_at
from backend.clusters.repository import all_clusters
from backend.database import Database
from backend.fairness import ended_days
from backend.fairness.share_rows import raw_shares
from backend.models import Cluster, Job, ShareDay
from backend.moments import moment_of
from backend.periods import DAY, period_of

log = logging.getLogger(__name__)

SETTLED_SECONDS = 600.0
"""What happened on a day is known this long after it: events may come late."""
MOST_DAYS = 7
"""Days that one run adds for a cluster; the next runs add the others."""
SUMMING_SECONDS = 20.0


def are_due(database: Database) -> bool:
    """Return whether a day is over and not kept yet."""
    with database.session_scope(writes=False) as session:
        return any(next(_due(session, cluster), None) for cluster in all_clusters(session))


def keep_days(database: Database) -> int:
    """Keep the shares of days that are over, oldest first; return how many."""
    kept = 0
    with database.session_scope(writes=False) as session:
        due = [
            (cluster, day)
            for cluster in all_clusters(session)
            for day, _ in zip(_due(session, cluster), range(MOST_DAYS), strict=False)
        ]
        rows = [_row(session, cluster, day) for cluster, day in due]
    for row in rows:
        with database.session_scope() as session:
            if session.get(ShareDay, (row.cluster_id, row.day)) is None:
                session.add(row)
                kept += 1
    return kept


def sum_ended(database: Database) -> int:
    """Sum up rho of days that are over, each in a transaction of its own; return their number.

    What `SUMMING_SECONDS` do not suffice for, the next run does.
    """
    summed, end = 0, time.monotonic() + SUMMING_SECONDS
    with database.session_scope(writes=False) as session:
        due = [
            (cluster.id, day)
            for cluster in all_clusters(session)
            for day in ended_days.days_to_sum(session, cluster)
        ]
    for cluster_id, day in due:
        if time.monotonic() > end:
            break
        try:
            with database.session_scope() as session:
                summed += ended_days.sum_day(session, session.get_one(Cluster, cluster_id), day)
        except IntegrityError:
            log.info("another process sums up rho of %s of %s", day, cluster_id)
    return summed


def _due(session: Session, cluster: Cluster) -> Iterator[date]:
    """Yield the days that are over and not kept, from the first job's on, in order."""
    newest = session.exec(
        select(func.max(ShareDay.day)).where(ShareDay.cluster_id == cluster.id)
    ).one()
    if newest is None:
        first = session.exec(
            select(func.min(Job.submitted_seconds)).where(Job.cluster_id == cluster.id)
        ).one()
        if first is None:
            return
        day = (cluster.epoch + timedelta(seconds=first)).date()
    else:
        day = newest + DAY
    now = cluster_seconds(cluster, moment_of(session))
    while seconds_at(cluster, period_of(day).end) + SETTLED_SECONDS <= now:
        yield day
        day += DAY


def _row(session: Session, cluster: Cluster, day: date) -> ShareDay:
    """Sum up a day; a cluster's first one begins with the cluster."""
    start, end = period_of(day).seconds(cluster)
    found = raw_shares(session, cluster, [max(start, 0.0), end])
    tenants = {
        tenant: [float(found.deserved[0, k]), float(found.held[0, k]), float(found.demanded[0, k])]
        for k, tenant in enumerate(found.tenants)
    }
    return ShareDay(
        cluster_id=cluster.id,
        day=day,
        capacity_gpu_seconds=float(found.capacity[0]),
        tenants=tenants,
    )
