"""Reads what the shares of tenants follow from: jobs, allocations, GPUs in service.

Commits nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa
from sqlmodel import Session, col

from backend.clusters.models import Cluster
from backend.clusters.repository import nodes_of
from backend.clusters.topology import capacity_by_type
from backend.fairness.models import ShareDay
from backend.fairness.shares import Capacity, Holding, Shares, Wanting, shares_over
from backend.fairness.weights import weights_over
from backend.jobs.models import Job, JobAllocation, JobPause
from backend.rounds.models import Round
from backend.usage.pieces import divided, held_piece
from maat.vocabulary import Adaptivity

_JOBS: sa.Table = Job.__table__  # type: ignore[attr-defined]
_SPANS: sa.Table = JobAllocation.__table__  # type: ignore[attr-defined]
_PAUSES: sa.Table = JobPause.__table__  # type: ignore[attr-defined]
_ROUNDS: sa.Table = Round.__table__  # type: ignore[attr-defined]


def raw_shares(session: Session, cluster: Cluster, edges: Sequence[float]) -> Shares:
    """Return the shares of the spans between `edges`, cluster seconds, from the rows themselves.

    Tenants count by the weights that they had at the time.
    """
    begin, end = edges[0], edges[-1]
    capacity = _capacity(session, cluster, begin, end)
    most = max((one.gpus for one in capacity), default=0.0)
    return shares_over(
        edges,
        _wanting(session, cluster.id, begin, end, most=most),
        _holding(session, cluster.id, begin, end),
        capacity,
        weights=weights_over(session, cluster.id, begin, end),
    )


class KeptDay(NamedTuple):
    """The columns of ShareDay that are told."""

    day: date
    capacity_gpu_seconds: float
    tenants: Mapping[str, Sequence[float]]


_KEPT: list[Any] = [col(getattr(ShareDay, name)) for name in KeptDay._fields]


def share_days(session: Session, cluster_id: str, first: date, last: date) -> dict[date, KeptDay]:
    """Return the days that are kept, from `first` to `last`, both included."""
    mine = (col(ShareDay.cluster_id) == cluster_id, col(ShareDay.day).between(first, last))
    rows = session.connection().execute(sa.select(*_KEPT).where(*mine))
    return {row[0]: KeptDay(*row) for row in rows}


def _wanting(
    session: Session, cluster_id: str, begin: float, end: float, *, most: float
) -> list[Wanting]:
    """The jobs that were active between two times, and as negative wishes those that were paused.

    An elastic job could use all GPUs that its owner allows, any other those that it asked for.
    """
    could = sa.case(
        (_JOBS.c.adaptivity == Adaptivity.RIGID, _JOBS.c.gpu_count), else_=_JOBS.c.max_gpus
    )
    jobs = sa.select(_JOBS.c.tenant_id, _JOBS.c.submitted_seconds, _JOBS.c.finished_seconds, could)
    rows = _over(session, jobs.where(_JOBS.c.cluster_id == cluster_id), begin, end)
    pauses = sa.select(_JOBS.c.tenant_id, _PAUSES.c.from_seconds, _PAUSES.c.to_seconds, could)
    of_jobs = pauses.join(_PAUSES, _PAUSES.c.job_id == _JOBS.c.id)
    away = _over(session, of_jobs.where(_PAUSES.c.cluster_id == cluster_id), begin, end)
    return [
        Wanting(tenant, since, until, sign * (most if gpus is None else min(float(gpus), most)))
        for sign, found in ((1.0, rows), (-1.0, away))
        for tenant, since, until, gpus in found
    ]


def _holding(session: Session, cluster_id: str, begin: float, end: float) -> list[Holding]:
    """The GPUs that jobs held; one that k jobs share counts 1/k for each, as in usage."""
    spans = sa.select(
        _JOBS.c.tenant_id,
        _SPANS.c.from_seconds,
        _SPANS.c.to_seconds,
        _SPANS.c.gpu_count,
        _SPANS.c.gpus,
    ).join(_SPANS, _SPANS.c.job_id == _JOBS.c.id)
    rows = _over(session, spans.where(_SPANS.c.cluster_id == cluster_id), begin, end)
    held = [
        held_piece(number, gpus or (), since, min(until, end))
        for number, (_, since, until, _, gpus) in enumerate(rows)
    ]
    return [
        Holding(rows[one.job][0], one.begin, one.end, float(rows[one.job][3] or 0) * one.share)
        for one in divided(held)
    ]


def _over(session: Session, statement: Any, begin: float, end: float) -> list[Any]:
    """Rows that lie over a span: an index finds those that ended in it or since, and the others.

    What has not ended lasts to the end of the span.
    """
    _, since, until, *_ = statement.selected_columns
    connection = session.connection()
    parts = [
        connection.execute(statement.where(since < end, condition)).all()
        for condition in (until > begin, until.is_(None))
    ]
    return [
        (tenant, first, np.inf if last is None else last, *gpus)
        for rows in parts
        for tenant, first, last, *gpus in rows
    ]


def _capacity(session: Session, cluster: Cluster, begin: float, end: float) -> list[Capacity]:
    """The GPUs in service by the rounds that are kept; without any, those of now."""
    at, gpus = _ROUNDS.c.at_seconds, _ROUNDS.c.gpus_total
    mine = sa.and_(_ROUNDS.c.cluster_id == cluster.id, at < end)
    latest = sa.select(sa.func.max(at)).where(mine, at <= begin)
    start: float | None = session.execute(latest).scalar_one()
    each = (
        sa.select(at, gpus, sa.func.lag(gpus).over(order_by=at).label("before"))
        .where(mine, at >= (begin if start is None else start))
        .subquery()
    )
    changed = sa.or_(each.c.before.is_(None), each.c.before != each.c.gpus_total)
    rows = session.execute(
        sa.select(each.c.at_seconds, each.c.gpus_total).where(changed).order_by(each.c.at_seconds)
    )
    found = [Capacity(since, float(count)) for since, count in rows]
    if found:
        return found
    usable = capacity_by_type(nodes_of(session, cluster.id), usable_only=True)
    return [Capacity(begin, float(sum(usable.values())))]
