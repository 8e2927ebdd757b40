"""Sums up the jobs that ended on a day that is over, and forgets the sums when they are outdated.

Commits nothing. Summing a day again gives the same rows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from datetime import date
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col, func, select

from backend.clocktime import cluster_seconds, shown_day
from backend.clusters.models import Cluster
from backend.fairness.distribution import RhoSums
from backend.fairness.models import OPEN, EndedDay, JobFairness, RhoDay
from backend.fairness.repository import ended_between, rho_by_tenant
from backend.jobs.models import Job
from backend.moments import moment_of
from backend.periods import DAY, period_of
from maat.vocabulary import JobState

Counted = tuple[str, str | None, int | None]
"""State, reason and formula version of JobFairness."""
_COUNTED_BY = ("state", "reason", "formula_version")
SETTLED_SECONDS = 86_400.0
"""A day is summed up this long after its end: until then its jobs may still be ended late."""


def days_to_sum(session: Session, cluster: Cluster) -> Iterator[date]:
    """Yield the days that are over, have all their rho and were not summed up, in order."""
    first = session.exec(
        select(func.min(JobFairness.finished_seconds)).where(JobFairness.cluster_id == cluster.id)
    ).one()
    if first is None:
        return
    mine = EndedDay.cluster_id == cluster.id
    done: set[date] = set(session.exec(select(col(EndedDay.day)).where(mine)))
    now = cluster_seconds(cluster, moment_of(session))
    day = shown_day(cluster, first)
    while period_of(day).seconds(cluster)[1] + SETTLED_SECONDS <= now:
        if day not in done and not _is_open(session, cluster, day):
            yield day
        day += DAY


def sum_day(session: Session, cluster: Cluster, day: date) -> bool:
    """Add the rows of a day; return False if it is summed up already, or waits for a rho again."""
    if session.get(EndedDay, (cluster.id, day)) is not None or _is_open(session, cluster, day):
        return False
    where = ended_between(cluster.id, *period_of(day).seconds(cluster))
    connection = session.connection()
    connection.execute(sa.delete(RhoDay).where(*_of(RhoDay, cluster.id, day)))
    rows = [
        {"cluster_id": cluster.id, "day": day, "tenant_id": tenant_id, **asdict(RhoSums.of(rho))}
        for tenant_id, rho in rho_by_tenant(session, *where).items()
    ]
    if rows:
        connection.execute(sa.insert(RhoDay), rows)
    counts, of_tenants = _counted(counts_by_tenant(session, *where))
    session.add(
        EndedDay(
            cluster_id=cluster.id,
            day=day,
            counts=counts,
            of_tenants=of_tenants,
            succeeded=succeeded_of(session, cluster, *period_of(day).seconds(cluster)),
        )
    )
    session.flush()
    return True


def forget_days(session: Session, cluster_id: str, finished_seconds: Iterable[float]) -> None:
    """Forget the sums of the days on which jobs ended whose rho has changed."""
    cluster = session.get_one(Cluster, cluster_id)
    days = {shown_day(cluster, seconds) for seconds in finished_seconds}
    mine = (col(EndedDay.cluster_id) == cluster_id, col(EndedDay.day).in_(days))
    session.connection().execute(sa.delete(EndedDay).where(*mine))


def counts_by_tenant(
    session: Session, *where: sa.ColumnElement[bool]
) -> Mapping[str, Mapping[Counted, int]]:
    """Return how many jobs there are, by tenant id."""
    of, by = col(JobFairness.tenant_id), [col(getattr(JobFairness, one)) for one in _COUNTED_BY]
    found: dict[str, dict[Counted, int]] = defaultdict(dict)
    rows = session.execute(sa.select(of, *by, sa.func.count()).where(*where).group_by(of, *by))
    for tenant_id, state, reason, version, number in rows:
        found[tenant_id][state, reason, version] = number
    return found


def _counted(
    by_tenant: Mapping[str, Mapping[Counted, int]],
) -> tuple[list[list[Any]], dict[str, list[int]]]:
    """Return the columns `counts` and `of_tenants` of a day."""
    together: Counter[Counted] = Counter()
    for counts in by_tenant.values():
        together.update(counts)
    rows = [[*of, number] for of, number in together.items()]
    parts = {
        tenant_id: [counts.get(of, 0) for of in together] for tenant_id, counts in by_tenant.items()
    }
    return rows, parts


def succeeded_of(session: Session, cluster: Cluster, begin: float, end: float) -> dict[str, int]:
    """Return how many jobs succeeded in a span of cluster seconds, by tenant id."""
    rows = session.execute(
        sa.select(col(Job.tenant_id), sa.func.count())
        .where(
            col(Job.cluster_id) == cluster.id,
            col(Job.state) == JobState.SUCCEEDED.value,
            col(Job.finished_seconds) >= begin,
            col(Job.finished_seconds) < end,
        )
        .group_by(col(Job.tenant_id))
    )
    return {tenant_id: count for tenant_id, count in rows}  # noqa: C416  (rows are no pairs)


def _is_open(session: Session, cluster: Cluster, day: date) -> bool:
    where = ended_between(cluster.id, *period_of(day).seconds(cluster))
    return session.exec(select(JobFairness.job_id).where(*where, OPEN).limit(1)).first() is not None


def _of(table: Any, cluster_id: str, day: date) -> tuple[sa.ColumnElement[bool], ...]:
    return col(table.cluster_id) == cluster_id, col(table.day) == day
