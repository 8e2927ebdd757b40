"""The tenants' shares of a cluster over a period, in spans. Reads only."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import numpy as np
from sqlmodel import Session

from backend.accounts.identity import Principal
from backend.clocktime import seconds_at
from backend.clusters.models import Cluster
from backend.fairness.repository import tenant_names
from backend.fairness.service import now_of
from backend.fairness.share_rows import raw_shares, share_days
from backend.fairness.shares import Shares
from backend.periods import DAY, Period, day_start, period_of, refuse_part
from backend.usage.reading import parts_are_known
from maat.api.fairness import SharePointOut, SharesOut, TenantShareOut
from maat.api.fields import rfc3339
from maat.scheduling.deserved import jain_index

FORMULA = (
    "deserved_k = min(demand_k, w_k x level), with one level for all, so that the deserved GPUs of "
    "all tenants sum to min(GPUs in service, demand); w_k is the tenant's weight then. Its demand "
    "is what its unfinished jobs could use: rigid ones the GPUs that they asked for, others as "
    "many as their owners allow. Actual: GPUs held by its jobs; one that k jobs share counts "
    "1/k for each. All are means over the span."
)
_STEPS = tuple(
    timedelta(seconds=seconds) for seconds in (60, 300, 900, 1800, 3600, 7200, 21_600, 43_200)
)


@dataclass
class _Span:
    """GPU seconds from `start` to `end`: of each tenant deserved, held and demanded."""

    start: datetime
    end: datetime
    capacity: float = 0.0
    tenants: dict[str, list[float]] = field(default_factory=dict)

    def add(self, capacity: float, tenants: Mapping[str, Sequence[float]]) -> None:
        self.capacity += capacity
        for tenant, (deserved, held, demanded) in tenants.items():
            mine = self.tenants.setdefault(tenant, [0.0, 0.0, 0.0])
            mine[0] += deserved
            mine[1] += held
            mine[2] += demanded


def shares(
    session: Session,
    principal: Principal,
    *,
    cluster: Cluster,
    period: Period,
    points: int = 60,
    most: int | None = None,
) -> SharesOut:
    """Return what each tenant deserved and held, over the period and in at most `points` spans.

    `most`: tenants with a share of their own; None: all.

    Spans of days come from days that are kept (`share_days`), where there are some.

    Raises Invalid for a period that begins or ends within a day of which only the sum is left.
    """
    now = now_of(session, cluster)
    # Nothing was before the cluster's time began, and nothing is known of what is to come.
    past = Period(max(period.start, cluster.epoch), max(period.end, cluster.epoch)).until(now)
    step = _step(past.length, points)
    if _has_only_days(session, cluster, past.start):
        step = max(step, DAY)
    spans = list(_spans(past, step))
    if step >= DAY:
        _add_days(session, cluster, period, spans)
    elif spans:
        edges = [seconds_at(cluster, at) for at in (*(s.start for s in spans), spans[-1].end)]
        _add_raw(spans, raw_shares(session, cluster, edges))
    whole = _Span(past.start, past.end)
    for span in spans:
        whole.add(span.capacity, span.tenants)
    seen = tenant_names(session, [one for one in whole.tenants if principal.may_see(one)])
    largest = sorted(seen, key=lambda one: (*_size(whole.tenants[one]), seen[one]))
    names = {one: seen[one] for one in largest[:most]}
    return SharesOut(
        cluster_id=cluster.id,
        period=period.show(now),
        formula=FORMULA,
        step_seconds=step.total_seconds(),
        tenants_together=len(seen) - len(names),
        whole=_show(whole, names) if spans else None,
        points=[_show(span, names) for span in spans],
    )


def _has_only_days(session: Session, cluster: Cluster, start: datetime) -> bool:
    """Return whether days are kept of this time, and no parts of them are known any more."""
    if parts_are_known(session, cluster, seconds_at(cluster, start)):
        return False
    return bool(share_days(session, cluster.id, start.date(), start.date()))


def _step(length: timedelta, points: int) -> timedelta:
    """The shortest round length of which so many spans cover the period."""
    for step in _STEPS:
        if length <= step * (points - 1):  # the first and the last may be parts
            return step
    return DAY * max(math.ceil(length / DAY / max(points - 1, 1)), 1)


def _spans(period: Period, step: timedelta) -> Iterator[_Span]:
    """Spans that begin at round times, but for the first; none of a period without length."""
    if not period.length:
        return
    first_day = day_start(period.start.date())
    begin = first_day + (period.start - first_day) // step * step
    while begin < period.end:
        yield _Span(max(begin, period.start), min(begin + step, period.end))
        begin += step


def _add_raw(spans: Sequence[_Span], found: Shares) -> None:
    for number, span in enumerate(spans):
        values = np.stack([found.deserved[number], found.held[number], found.demanded[number]])
        tenants = dict(zip(found.tenants, values.T.tolist(), strict=True))
        span.add(float(found.capacity[number]), tenants)


def _add_days(session: Session, cluster: Cluster, period: Period, spans: Sequence[_Span]) -> None:
    """Add whole days as they are kept, and the others from the rows.

    Raises Invalid for a part of a day of which only the sum is left.
    """
    if not spans:
        return
    kept = share_days(session, cluster.id, spans[0].start.date(), spans[-1].end.date())
    for span in spans:
        for part in Period(span.start, span.end).parts():
            day = kept.get(part.start.date())
            if day is not None and _is_whole(part, cluster):
                span.add(day.capacity_gpu_seconds, day.tenants)
                continue
            if day is not None and _has_only_days(session, cluster, part.start):
                refuse_part(part, period)
            raw = raw_shares(session, cluster, part.seconds(cluster))
            one = [_Span(part.start, part.end)]
            _add_raw(one, raw)
            span.add(one[0].capacity, one[0].tenants)


def _is_whole(part: Period, cluster: Cluster) -> bool:
    """Return whether it is all of a day that the cluster has: its first one begins late."""
    day = period_of(part.start.date())
    return part.start <= max(day.start, cluster.epoch) and part.end == day.end


def _size(values: Sequence[float]) -> tuple[float, float]:
    """Return what sorts tenants, the largest first: by the larger share, then by what they held."""
    deserved, held, _ = values
    return -max(deserved, held), -held


def _show(span: _Span, names: Mapping[str, str]) -> SharePointOut:
    own = sorted((name, span.tenants[one]) for one, name in names.items() if one in span.tenants)
    others = [values for one, values in span.tenants.items() if one not in names]
    shown = [_share(name, values, span.capacity) for name, values in own]
    if others:
        shown.append(
            _share(None, [sum(column) for column in zip(*others, strict=True)], span.capacity)
        )
    got = np.array([held / due for due, held, _ in span.tenants.values() if due > 0])
    seconds = (span.end - span.start).total_seconds()
    return SharePointOut(
        {
            "from": rfc3339(span.start),
            "to": rfc3339(span.end),
            "gpus": span.capacity / seconds if seconds > 0 else 0.0,
            "jain_index": jain_index(got) if len(got) else None,
            "tenants": shown,
        }
    )


def _share(tenant: str | None, values: Sequence[float], capacity: float) -> TenantShareOut:
    deserved, held, demanded = (value / capacity if capacity > 0 else 0.0 for value in values)
    return TenantShareOut(tenant=tenant, deserved=deserved, actual=held, demanded=demanded)
