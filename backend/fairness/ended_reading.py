"""Reads what became of the jobs that ended in a period: job by job, or from sums of days.

Commits nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta

import sqlalchemy as sa
from sqlmodel import Session, col, select

from backend.clusters.models import Cluster
from backend.fairness.distribution import Distribution, RhoSums
from backend.fairness.ended_days import counts_of, succeeded_of
from backend.fairness.models import EndedDay, RhoDay
from backend.fairness.repository import ended_between, rho_by_tenant
from backend.periods import Period, period_of

EXACT = timedelta(days=62)
"""A period up to this long is read job by job: its quantiles are exact."""

Counted = tuple[str, str | None, int | None]
"""State, reason and formula version of JobFairness."""


@dataclass(frozen=True)
class EndedJobs:
    """rho of the jobs of a cluster that ended in a period, by tenant id, and their number."""

    rho: Mapping[str, Distribution]
    counts: Mapping[Counted, int]
    is_exact: bool


def ended_jobs(session: Session, cluster: Cluster, period: Period) -> EndedJobs:
    split = _split(session, cluster, period)
    parts: dict[str, list[Distribution]] = defaultdict(list)
    counts: Counter[Counted] = Counter()
    for tenant_id, sums in _sums(session, cluster, [row.day for row in split.days]).items():
        parts[tenant_id].append(Distribution(sums=sums))
    for row in split.days:
        for state, reason, version, number in row.counts:
            counts[state, reason, version] += number
    for begin, end in split.spans:
        where = ended_between(cluster.id, begin, end)
        for tenant_id, rho in rho_by_tenant(session, *where).items():
            parts[tenant_id].append(Distribution(exact=rho))
        for state, reason, version, number in counts_of(session, *where):
            counts[state, reason, version] += number
    rho_of = {tenant_id: Distribution.merged(some) for tenant_id, some in parts.items()}
    return EndedJobs(rho_of, counts, is_exact=not split.days)


def succeeded_in(session: Session, cluster: Cluster, period: Period) -> Counter[str]:
    """Count the jobs that succeeded in a period, by tenant id."""
    split = _split(session, cluster, period)
    found: Counter[str] = Counter()
    for row in split.days:
        found.update(row.succeeded)
    for begin, end in split.spans:
        found.update(succeeded_of(session, cluster, begin, end))
    return found


@dataclass
class _Split:
    """A period as days that were summed up, and spans of cluster seconds that were not."""

    days: list[EndedDay] = field(default_factory=list)
    spans: list[tuple[float, float]] = field(default_factory=list)


def _split(session: Session, cluster: Cluster, period: Period) -> _Split:
    split = _Split()
    if period.length <= EXACT:
        split.spans.append(period.seconds(cluster))
        return split
    between = col(EndedDay.day).between(period.start.date(), period.end.date())
    rows = session.exec(select(EndedDay).where(EndedDay.cluster_id == cluster.id, between))
    summed = {row.day: row for row in rows}
    for part in period.parts():
        row = summed.get(part.start.date())
        if row is not None and part == period_of(row.day):
            split.days.append(row)
            continue
        begin, end = part.seconds(cluster)
        if split.spans and split.spans[-1][1] == begin:
            begin, _ = split.spans.pop()
        split.spans.append((begin, end))
    return split


def _sums(session: Session, cluster: Cluster, days: Sequence[date]) -> dict[str, list[RhoSums]]:
    found: dict[str, list[RhoSums]] = defaultdict(list)
    if not days:
        return found
    names = ("day", "tenant_id", "jobs", "micros", "unfair", "worst", "sketch")
    statement = sa.select(*(col(getattr(RhoDay, name)) for name in names)).where(
        col(RhoDay.cluster_id) == cluster.id, col(RhoDay.day).between(min(days), max(days))
    )
    wanted = set(days)
    for day, tenant_id, *sums in session.connection().execute(statement):
        if day in wanted:
            found[tenant_id].append(RhoSums(*sums))
    return found
