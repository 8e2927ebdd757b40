"""Reads what became of the jobs that ended in a period: job by job, or from sums of days.

Commits nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlmodel import Session, col

from backend.clusters.models import Cluster
from backend.fairness.distribution import Distribution, RhoSums
from backend.fairness.ended_days import Counted, counts_by_tenant, succeeded_of
from backend.fairness.models import EndedDay, JobFairness, RhoDay
from backend.fairness.repository import ended_between, rho_by_tenant
from backend.periods import Period, runs_of
from backend.usage import sketch

EXACT = timedelta(days=62)
"""A period up to this long is read job by job: its quantiles are exact."""


class _Day(NamedTuple):
    """A day that was summed up: the columns of EndedDay."""

    day: date
    counts: Sequence[Sequence[Any]]
    succeeded: Mapping[str, int]


@dataclass(frozen=True)
class EndedJobs:
    """The jobs of a cluster that ended in a period. What is read is kept."""

    session: Session
    cluster: Cluster
    period: Period

    @property
    def is_exact(self) -> bool:
        """Whether all of it is told job by job."""
        return not self._days

    @cached_property
    def rho(self) -> Mapping[str, Distribution]:
        """The distribution of rho, by tenant id."""
        parts: dict[str, list[Distribution]] = defaultdict(list)
        for first, last in runs_of([one.day for one in self._days]):
            for tenant_id, sums in self._sums(first, last).items():
                parts[tenant_id].append(Distribution(sums=[sums]))
        for begin, end in self._spans:
            where = ended_between(self.cluster.id, begin, end)
            for tenant_id, rho in rho_by_tenant(self.session, *where).items():
                parts[tenant_id].append(Distribution(exact=rho))
        return {tenant_id: Distribution.merged(some) for tenant_id, some in parts.items()}

    def counts(self, *, of: str | None) -> Mapping[Counted, int]:
        """Return how many jobs there are by their state, and by why they have no rho.

        `of`: a tenant's id; None for all tenants.
        """
        counts: Counter[Counted] = Counter()
        numbers = {} if of is None else self._numbers_of(of)
        for day in self._days:
            rows = day.counts if of is None else _part(day.counts, numbers[day.day])
            for state, reason, version, number in rows:
                counts[state, reason, version] += number
        mine = () if of is None else (col(JobFairness.tenant_id) == of,)
        for begin, end in self._spans:
            where = ended_between(self.cluster.id, begin, end)
            for found in counts_by_tenant(self.session, *where, *mine).values():
                counts.update(found)
        return counts

    @cached_property
    def succeeded(self) -> Counter[str]:
        """How many jobs succeeded, by tenant id."""
        found: Counter[str] = Counter()
        for day in self._days:
            for tenant_id, number in day.succeeded.items():
                found[tenant_id] += number
        for begin, end in self._spans:
            found.update(succeeded_of(self.session, self.cluster, begin, end))
        return found

    @cached_property
    def _days(self) -> Sequence[_Day]:
        """The whole days of a long period that were summed up, in order."""
        if self.period.length <= EXACT:
            return []
        columns = [col(getattr(EndedDay, name)) for name in _Day._fields]
        first, last = self.period.start.date(), self.period.end.date()
        mine = (col(EndedDay.cluster_id) == self.cluster.id, columns[0].between(first, last))
        rows = self.session.connection().execute(
            sa.select(*columns).where(*mine).order_by(columns[0])
        )
        whole = {part.start.date() for part in self.period.parts() if part.has_whole_days}
        return [_Day(*row) for row in rows if row[0] in whole]

    def _numbers_of(self, tenant_id: str) -> Mapping[date, Sequence[int]]:
        """Return how many of each row of `counts` are a tenant's, by summed day."""
        day, parts = col(EndedDay.day), col(EndedDay.of_tenants)
        summed = [one.day for one in self._days]
        found: dict[date, Sequence[int]] = dict.fromkeys(summed, ())
        for first, last in runs_of(summed):
            mine = (col(EndedDay.cluster_id) == self.cluster.id, day.between(first, last))
            rows = self.session.connection().execute(sa.select(day, parts).where(*mine))
            found |= {day: of_tenants.get(tenant_id, ()) for day, of_tenants in rows}
        return found

    @cached_property
    def _spans(self) -> Sequence[tuple[float, float]]:
        """The cluster seconds of the period that were not summed up."""
        summed = {one.day for one in self._days}
        if not summed:
            return [self.period.seconds(self.cluster)]
        spans: list[tuple[float, float]] = []
        for part in self.period.parts():
            if part.start.date() in summed:
                continue
            begin, end = part.seconds(self.cluster)
            if spans and spans[-1][1] == begin:
                begin, _ = spans.pop()
            spans.append((begin, end))
        return spans

    def _sums(self, first: date, last: date) -> dict[str, RhoSums]:
        """Return the sums of neighbouring summed days, by tenant id."""
        of, connection = RhoDay, self.session.connection()
        where = (col(of.cluster_id) == self.cluster.id, col(of.day).between(first, last))
        sketches: dict[str, list[bytes]] = defaultdict(list)
        of_each = sa.select(col(of.tenant_id), col(of.sketch)).where(*where)
        for tenant_id, packed in connection.execute(of_each).all():  # at once: quicker by half
            sketches[tenant_id].append(packed)
        sums: list[Any] = [sa.func.sum(col(one)) for one in (of.jobs, of.micros, of.unfair)]
        summed = sa.select(col(of.tenant_id), *sums, sa.func.max(col(of.worst))).where(*where)
        return {
            tenant_id: RhoSums(
                int(jobs), int(micros), int(unfair), worst, sketch.merged(sketches[tenant_id])
            )
            for tenant_id, jobs, micros, unfair, worst in connection.execute(
                summed.group_by(col(of.tenant_id))
            )
        }


def _part(rows: Sequence[Sequence[Any]], numbers: Sequence[int]) -> Iterator[Sequence[Any]]:
    """Yield these rows of EndedDay.counts with a tenant's numbers; it may have no job of any."""
    for row, number in zip(rows, numbers, strict=False):
        if number:
            yield *row[:-1], number
