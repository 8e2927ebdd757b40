"""Reads the use of a period: from days that were summed up, and else from raw rows.

Commits nothing. Knows nothing of who may see what, except that it can read one tenant's rows alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlmodel import Session, col, select

from backend.accounts.models import Tenant
from backend.clusters.models import Cluster
from backend.periods import Period, period_of, refuse_part, runs_of
from backend.usage.days import add_folded
from backend.usage.models import ALL_TENANTS, CapacityDay, UsageDay, UsageMonth, WaitDay
from backend.usage.months import days_outside, summed_months, whole_months
from backend.usage.raw import raw_tally
from backend.usage.repository import round_span, summed_days
from backend.usage.tally import (
    PARTS,
    Dimension,
    Key,
    Sums,
    Tally,
    Waits,
    capacity_of,
)

Cells = dict[tuple[str, str], Sums]
"""Sums by (name, GPU type)."""
_TREMBLE = 1e-3  # seconds by which a date, in microseconds, may miss a cluster time
_Table = type[UsageDay] | type[UsageMonth]


@dataclass
class PeriodUse:
    """The use of a cluster in a period that has passed. `now`: cluster seconds."""

    session: Session
    cluster: Cluster
    period: Period
    now: float
    _raw: dict[date, Tally] = field(default_factory=dict)
    _summed: list[date] = field(default_factory=list)

    def __post_init__(self) -> None:
        parts = list(self.period.parts())
        if not parts:
            return
        asked = (parts[0].start.date(), parts[-1].start.date())
        summed = set(summed_days(self.session, self.cluster.id, *asked))
        for part in parts:
            day = part.start.date()
            if day in summed and part == period_of(day):
                self._summed.append(day)
            else:
                self._raw[day] = self._tally(part, is_summed=day in summed)

    @cached_property
    def days(self) -> Sequence[date]:
        return list(self.period.days())

    def by_name(self, dimension: Dimension, *, of: str | None, first: date, last: date) -> Cells:
        """Return the sums of each name and GPU type over some days.

        `of`: a tenant's id, ALL_TENANTS for the sums of all, None for the rows of every tenant.
        """
        cells: Cells = defaultdict(_zeros)
        for table, within in self._stretches(first, last):
            columns = (col(table.name), col(table.gpu_type))
            for row in self._sums(table, columns, dimension, of, within):
                cells[row[0], row[1]] += _whole(row[2:])
        for day, tally in self._raw.items():
            if first <= day <= last:
                for (key, gpu_type), sums in tally.used.items():
                    if _counts(key, dimension, of):
                        cells[key.name, gpu_type] += sums
        return cells

    def by_day(
        self,
        dimension: Dimension,
        *,
        of: str | None,
        names: Iterable[str] | None = None,
        tenants: Iterable[str] | None = None,
    ) -> dict[tuple[date, str, str], Sums]:
        """Return sums by (day, name, GPU type); without `names` by (day, "", GPU type).

        `tenants`: ids of all whose rows have these names, if known: no others are read then.
        """
        wanted = None if names is None else set(names)
        cells: dict[tuple[date, str, str], Sums] = defaultdict(_zeros)
        named = () if wanted is None else (col(UsageDay.name),)
        columns = (col(UsageDay.day), col(UsageDay.gpu_type), *named)
        where = [] if wanted is None else [col(UsageDay.name).in_(wanted)]
        whose = of if of is not None or tenants is None else set(tenants)
        for begin, end in self._runs(date.min, date.max):
            within = col(UsageDay.day).between(begin, end)
            for row in self._sums(UsageDay, columns, dimension, whose, within, *where):
                day, gpu_type, *rest = row
                name = "" if wanted is None else rest.pop(0)
                cells[day, name, gpu_type] += _whole(rest)
        for day, tally in self._raw.items():
            for (key, gpu_type), sums in tally.used.items():
                if _counts(key, dimension, of) and (wanted is None or key.name in wanted):
                    cells[day, "" if wanted is None else key.name, gpu_type] += sums
        return cells

    def waits(
        self, dimension: Dimension, *, of: str | None, by_day: bool = False
    ) -> dict[str, Waits]:
        """Return how long jobs waited: by name, or by day, such as 2026-11-20."""
        found: dict[str, Waits] = defaultdict(Waits)
        key: Any = col(WaitDay.day) if by_day else col(WaitDay.name)
        sums: list[Any] = [
            sa.func.sum(col(WaitDay.jobs)),
            sa.func.sum(col(WaitDay.waited_ms)),
            sa.func.max(col(WaitDay.longest_ms)),
        ]
        connection = self.session.connection()
        for first, last in self._runs(date.min, date.max):
            where = (
                col(WaitDay.cluster_id) == self.cluster.id,
                col(WaitDay.dimension) == dimension.value,
                _of_tenant(col(WaitDay.tenant_id), of),
                col(WaitDay.day).between(first, last),
            )
            summed: Any = sa.select(key, *sums).where(*where).group_by(key)
            for name, jobs, waited, most in connection.execute(summed):
                found[str(name)].add(Waits(int(jobs), int(waited), most))
            of_each = sa.select(key, col(WaitDay.sketch)).where(*where)
            for name, sketch in connection.execute(of_each).all():  # at once: quicker by half
                found[str(name)].sketches.append(sketch)
        for day, tally in self._raw.items():
            for of_key, waits in tally.waits.items():
                if _counts(of_key, dimension, of):
                    found[day.isoformat() if by_day else of_key.name].add(waits)
        return found

    @cached_property
    def capacity(self) -> dict[tuple[date, str], Sums]:
        """CAPACITY_PARTS by day and GPU type."""
        found: dict[tuple[date, str], Sums] = {}
        for first, last in self._runs(date.min, date.max):
            statement = select(CapacityDay).where(
                CapacityDay.cluster_id == self.cluster.id, col(CapacityDay.day).between(first, last)
            )
            for row in self.session.exec(statement):
                found[row.day, row.gpu_type] = capacity_of(row)
        for day, tally in self._raw.items():
            found |= {(day, gpu_type): sums for gpu_type, sums in tally.capacity.items()}
        return found

    def _tally(self, part: Period, *, is_summed: bool) -> Tally:
        start, end = part.seconds(self.cluster)
        day = part.start.date()
        whole_start, whole_end = period_of(day).seconds(self.cluster)
        is_whole = start <= whole_start and end >= min(whole_end, self.now) - _TREMBLE
        if not is_whole:
            self._check_kept(part, start)
        tally = raw_tally(self.session, self.cluster.id, start, end, now=self.now)
        if is_whole and not is_summed:
            add_folded(self.session, self.cluster.id, day, tally)
        return tally

    def _check_kept(self, part: Period, start: float) -> None:
        """Refuse a part of a day of which only sums are left."""
        if not parts_are_known(self.session, self.cluster, start):
            refuse_part(part, self.period)

    def _sums(
        self,
        table: _Table,
        columns: Sequence[Any],
        dimension: Dimension,
        of: str | Collection[str] | None,
        *where: sa.ColumnElement[bool],
    ) -> Sequence[Sequence[Any]]:
        parts = (sa.func.sum(col(getattr(table, part))) for part in PARTS)
        mine = (
            col(table.cluster_id) == self.cluster.id,
            col(table.dimension) == dimension.value,
            _of_tenant(col(table.tenant_id), of),
        )
        statement = sa.select(*columns, *parts).where(*mine, *where).group_by(*columns)
        return self.session.connection().execute(statement).all()

    def _stretches(
        self, first: date, last: date
    ) -> Iterator[tuple[_Table, sa.ColumnElement[bool]]]:
        """Yield which rows have the sums of the summed days within these: of months if they can."""
        days = [day for day in self._summed if first <= day <= last]
        months = set(whole_months(days)) & self._months
        if months:
            yield UsageMonth, col(UsageMonth.month).in_(months)
        for begin, end in runs_of(days_outside(days, months)):
            yield UsageDay, col(UsageDay.day).between(begin, end)

    @cached_property
    def _months(self) -> set[date]:
        return summed_months(self.session, self.cluster.id)

    def _runs(self, first: date, last: date) -> Iterator[tuple[date, date]]:
        """Yield the runs of neighbouring summed days within these."""
        return runs_of([day for day in self._summed if first <= day <= last])


def parts_are_known(session: Session, cluster: Cluster, start: float) -> bool:
    """Return whether parts of days can still be read from a cluster second on.

    They are read from rounds; once these are deleted only sums of whole days are left.
    """
    if cluster.latest_round is None:
        return True
    kept = round_span(session, cluster.id)
    if kept is None:
        return False
    return kept[0] <= start or cluster.latest_round <= cluster.keep_rounds


def _whole(sums: Sequence[Any]) -> Sums:
    return np.array([int(each) for each in sums], dtype=np.int64)  # PostgreSQL sums to decimals


def _zeros() -> Sums:
    return np.zeros(len(PARTS), dtype=np.int64)


def _counts(key: Key, dimension: Dimension, of: str | None) -> bool:
    if key.dimension is not dimension:
        return False
    return key.tenant_id != ALL_TENANTS if of is None else key.tenant_id == of


def _of_tenant(column: Any, of: str | Collection[str] | None) -> sa.ColumnElement[bool]:
    """Select the rows of a tenant, of some, or of each: the key then leads to the days of each."""
    found: sa.ColumnElement[bool] = (
        column == of
        if isinstance(of, str)
        else column.in_(sa.select(col(Tenant.id)) if of is None else of)
    )
    return found
