"""What a cluster's GPUs were used for and what that cost, as far as the reader may know.

Commits nothing. Other tenants are summed up, never named.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from functools import cached_property

import numpy as np
from sqlmodel import Session, col, select

from backend.accounts.identity import Principal
from backend.accounts.models import Tenant, User
from backend.clocktime import cluster_seconds
from backend.clusters.models import Cluster
from backend.moments import moment_of
from backend.periods import Period, period_of
from backend.usage.costs import MS_PER_HOUR, Cost, Era, eras, prices_on
from backend.usage.models import ALL_TENANTS, GpuPrice
from backend.usage.reading import PeriodUse
from backend.usage.showing import Amount, show_type, show_waits
from backend.usage.tally import CAPACITY_PARTS, PARTS, Dimension, Sums, Waits
from maat.api.fields import rfc3339
from maat.api.usage import (
    FORMULAS,
    OTHER_TENANTS,
    DayUse,
    TypeUse,
    UsageBy,
    UsageOut,
    UsageRow,
)

MOST_ROWS_PER_DAY = 12
"""Rows of which `per_day` tells the days: as many as a chart can tell apart."""

_DIMENSIONS = {
    UsageBy.TENANT: Dimension.TENANT,
    UsageBy.USER: Dimension.USER,
    UsageBy.MODEL: Dimension.MODEL,
    UsageBy.LABEL: Dimension.LABEL,
}
_SUMMED_FOR_ALL = frozenset({Dimension.MODEL, Dimension.LABEL})


def usage(
    session: Session,
    principal: Principal,
    *,
    cluster: Cluster,
    period: Period,
    by: UsageBy = UsageBy.TENANT,
    per_day: bool = False,
) -> UsageOut:
    """Return the use of a cluster in a period, as far as it has passed. Raises Invalid.

    `per_day`: also the allocated hours by day, of the MOST_ROWS_PER_DAY largest rows.
    """
    now = cluster_seconds(cluster, moment_of(session))
    shown_now = cluster.epoch + timedelta(seconds=now)
    use = PeriodUse(session, cluster, period.until(shown_now), now)
    prices = session.exec(select(GpuPrice).where(GpuPrice.cluster_id == cluster.id)).all()
    report = _Report(session, principal, use, prices)
    return report.answer(period, by, per_day=per_day, now=shown_now)


class _Report:
    """One report, for one reader. `own`: the tenant whose rows are shown; None for all."""

    def __init__(
        self, session: Session, principal: Principal, use: PeriodUse, prices: Sequence[GpuPrice]
    ) -> None:
        self._session, self._use, self._prices = session, use, prices
        self._own = None if principal.sees_all_tenants else principal.tenant_id
        days = use.days
        self._eras: list[Era] = list(eras(prices, days[0], days[-1])) if days else []
        self._total_by_day = use.by_day(Dimension.MODEL, of=ALL_TENANTS)

    def answer(self, period: Period, by: UsageBy, *, per_day: bool, now: object) -> UsageOut:
        total = self._sum(self._total_by_day)
        rows = self._rows(by)
        names = self._shown_names(by, rows)
        waits = self._waits(by)
        order = sorted(rows, key=lambda key: (-int(rows[key].sums[0]), names[key]))
        if by is UsageBy.DAY:
            order = sorted(rows)
        by_day = self._per_day(by, order[:MOST_ROWS_PER_DAY]) if per_day else {}
        cluster, moment = (
            self._use.cluster,
            self._use.cluster.epoch + timedelta(seconds=self._use.now),
        )
        return UsageOut(
            cluster_id=cluster.id,
            cluster=cluster.name,
            period=period.show(moment),
            as_of=rfc3339(moment),
            by=by,
            currency=self._prices[0].currency if self._prices else None,
            total=total.figures(),
            waits=show_waits(self._all_waits(waits)),
            rows=[
                UsageRow(
                    name=names[key],
                    figures=rows[key].figures(),
                    waits=None if waits is None else show_waits(waits.get(key, Waits())),
                    allocated_gpu_hours_by_day=by_day.get(key),
                )
                for key in order
            ],
            others=self._others(total, per_day=per_day),
            gpu_types=self._gpu_types(),
            days=self._days(moment),
            formulas=FORMULAS,
        )

    # ---- rows

    def _rows(self, by: UsageBy) -> dict[str, Amount]:
        """Return what the reader may see, by the row's key."""
        if by in (UsageBy.DAY, UsageBy.GPU_TYPE):
            rows: dict[str, Amount] = defaultdict(Amount)
            for (day, _, gpu_type), sums in self._visible_by_day.items():
                key = day.isoformat() if by is UsageBy.DAY else gpu_type
                rows[key].add(sums, self._cost(day, gpu_type, sums))
            return rows
        dimension = _DIMENSIONS[by]
        found: dict[str, Amount] = defaultdict(Amount)
        for era in self._eras:
            cells = self._use.by_name(
                dimension, of=self._of(dimension), first=era.first, last=era.last
            )
            for (name, gpu_type), sums in cells.items():
                found[name].add(sums, era.cost(gpu_type, int(sums[0])))
        return found

    def _of(self, dimension: Dimension) -> str | None:
        """Return whose rows to read: the own tenant's, or of all tenants their sums if stored."""
        if self._own is not None:
            return self._own
        return ALL_TENANTS if dimension in _SUMMED_FOR_ALL else None

    @property
    def _visible_by_day(self) -> Mapping[tuple[date, str, str], Sums]:
        if self._own is None:
            return self._total_by_day
        return self._own_by_day

    @cached_property
    def _own_by_day(self) -> Mapping[tuple[date, str, str], Sums]:
        return self._use.by_day(Dimension.TENANT, of=self._own)

    def _others(self, total: Amount, *, per_day: bool) -> UsageRow | None:
        """Return what all tenants used whose rows the reader may not see."""
        if self._own is None:
            return None
        own = self._own_by_day
        left = total.less(self._sum(own))
        hours = None
        if per_day:
            both, mine = _allocated_by_day(self._total_by_day), _allocated_by_day(own)
            hours = [(both[day] - mine[day]) / MS_PER_HOUR for day in self._use.days]
        return UsageRow(
            name=OTHER_TENANTS,
            figures=left.figures(),
            waits=None,
            allocated_gpu_hours_by_day=hours,
        )

    def _per_day(self, by: UsageBy, keys: Sequence[str]) -> dict[str, list[float]]:
        if by is UsageBy.DAY:
            return {}
        hours: dict[str, dict[date, int]] = {key: defaultdict(int) for key in keys}
        if by is UsageBy.GPU_TYPE:
            cells = self._visible_by_day
            named = ((day, gpu_type, sums) for (day, _, gpu_type), sums in cells.items())
        else:
            dimension = _DIMENSIONS[by]
            found = self._use.by_day(
                dimension, of=self._of(dimension), names=keys, tenants=self._tenants_of(by, keys)
            )
            named = ((day, name, sums) for (day, name, _), sums in found.items())
        for day, name, sums in named:
            if name in hours:
                hours[name][day] += int(sums[0])
        return {
            key: [found_on[day] / MS_PER_HOUR for day in self._use.days]
            for key, found_on in hours.items()
        }

    def _tenants_of(self, by: UsageBy, keys: Sequence[str]) -> Sequence[str] | None:
        """Return the tenants of these rows where a row has one, which never changes."""
        if by is UsageBy.TENANT:
            return keys
        if by is UsageBy.USER:
            of = select(User.tenant_id).where(col(User.id).in_(keys)).distinct()
            return self._session.exec(of).all()
        return None

    def _shown_names(self, by: UsageBy, keys: Mapping[str, object]) -> dict[str, str]:
        if by not in (UsageBy.TENANT, UsageBy.USER):
            return {key: key for key in keys}
        table: type[Tenant] | type[User] = Tenant if by is UsageBy.TENANT else User
        found = dict(self._session.exec(select(table.id, table.name)).all())
        return {key: found.get(key, key) for key in keys}

    # ---- sums

    def _cost(self, day: date, gpu_type: str, sums: Sums) -> Cost:
        era = next(era for era in self._eras if era.first <= day <= era.last)
        return era.cost(gpu_type, int(sums[0]))

    def _sum(self, cells: Mapping[tuple[date, str, str], Sums]) -> Amount:
        total = Amount()
        for (day, _, gpu_type), sums in cells.items():
            total.add(sums, self._cost(day, gpu_type, sums))
        return total

    def _waits(self, by: UsageBy) -> Mapping[str, Waits] | None:
        own = self._own
        if by is UsageBy.DAY:
            dimension = Dimension.MODEL if own is None else Dimension.TENANT
            of = ALL_TENANTS if own is None else own
            return self._use.waits(dimension, of=of, by_day=True)
        if by in (UsageBy.TENANT, UsageBy.MODEL):
            dimension = _DIMENSIONS[by]
            return self._use.waits(dimension, of=self._of(dimension))
        return None

    def _all_waits(self, by_row: Mapping[str, Waits] | None) -> Waits:
        """Return the waits of all tenants' jobs. `by_row`: what the reader sees of them."""
        if self._own is None and by_row is not None:
            return Waits.summed(by_row.values())
        return Waits.summed(self._use.waits(Dimension.MODEL, of=ALL_TENANTS).values())

    def _days(self, now: object) -> list[DayUse]:
        amounts: dict[date, Amount] = defaultdict(Amount)
        for (day, _, gpu_type), sums in self._total_by_day.items():
            amounts[day].add(sums, self._cost(day, gpu_type, sums))
        capacity: dict[date, int] = defaultdict(int)
        for (day, _), sums in self._use.capacity.items():
            capacity[day] += int(sums[0])
        period = self._use.period
        return [
            DayUse(
                day=day.isoformat(),
                is_partial=not (
                    period.start <= period_of(day).start and period_of(day).end <= period.end
                ),
                figures=amounts[day].figures(),
                capacity_gpu_hours=capacity[day] / MS_PER_HOUR,
            )
            for day in self._use.days
        ]

    def _gpu_types(self) -> list[TypeUse]:
        """Return how far each type was used, by all tenants together."""
        used: dict[str, Sums] = defaultdict(lambda: np.zeros(len(PARTS), dtype=np.int64))
        for (_, _, gpu_type), sums in self._total_by_day.items():
            used[gpu_type] = used[gpu_type] + sums
        usable: dict[str, Sums] = defaultdict(lambda: np.zeros(len(CAPACITY_PARTS), dtype=np.int64))
        costs: dict[str, list[Cost]] = defaultdict(lambda: [Cost(), Cost(), Cost()])
        held: dict[tuple[date, str], int] = defaultdict(int)
        for (day, _, gpu_type), sums in self._total_by_day.items():
            held[day, gpu_type] += int(sums[0])
        for (day, gpu_type), sums in self._use.capacity.items():
            usable[gpu_type] = usable[gpu_type] + sums
            idle = max(int(sums[0]) - held[day, gpu_type], 0)
            era = next(era for era in self._eras if era.first <= day <= era.last)
            for at, milliseconds in enumerate((idle, int(sums[1]), int(sums[2]))):
                costs[gpu_type][at] += era.cost(gpu_type, milliseconds)
        today = self._use.days[-1] if self._use.days else self._use.period.start.date()
        prices = prices_on(self._prices, today)
        return [
            show_type(name, used[name], usable[name], costs[name], prices.get(name))
            for name in sorted(usable.keys() | used.keys())
        ]


def _allocated_by_day(cells: Mapping[tuple[date, str, str], Sums]) -> dict[date, int]:
    found: dict[date, int] = defaultdict(int)
    for (day, _, _), sums in cells.items():
        found[day] += int(sums[0])
    return found
