"""Reads the raw rows that use is computed from, and the days that were summed up.

Commits nothing. The worker calls it too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlmodel import Session, col, select

from backend.attempts.models import AttemptRow
from backend.jobs.models import AllocationReading, Job, JobAllocation
from backend.rounds.models import Round
from backend.usage.models import CapacityDay, SummedDay
from maat.vocabulary import StopReason

STOPPED = tuple(
    reason.value
    for reason in (
        StopReason.MOVED,
        StopReason.PREEMPTED,
        StopReason.PAUSED,
        StopReason.CANCELLED,
    )
)
"""Attempts asked to end for these reasons hold GPUs that their job's timeline no longer shows."""


class SpanRow(NamedTuple):
    """A row of allocations with what is needed of its job. The last three: its counters now."""

    job_id: str
    from_seconds: float
    to_seconds: float | None
    running_seconds: float | None
    for_profile: bool
    gpu_type: str
    gpus: Sequence[int]
    processed_before: float | None
    gained_before: float | None
    lost_before: float | None
    processed_after: float | None
    gained_after: float | None
    lost_after: float | None
    tenant_id: str
    owner_id: str
    model: str
    labels: Mapping[str, str]
    submitted_seconds: float
    started_seconds: float | None
    processed_samples: float
    gained_samples: float
    lost_gpu_seconds: float
    unwaited_seconds: float = 0.0


_OF_SPAN = SpanRow._fields[:13]
_OF_JOB = SpanRow._fields[13:]
_COLUMNS: list[Any] = [
    *(col(getattr(JobAllocation, name)) for name in _OF_SPAN),
    *(col(getattr(Job, name)) for name in _OF_JOB),
]


def spans_between(session: Session, cluster_id: str, start: float, end: float) -> list[SpanRow]:
    """List the spans that overlap a window, ended or not."""
    begun = (col(JobAllocation.cluster_id) == cluster_id, col(JobAllocation.from_seconds) < end)
    asked = sa.select(*_COLUMNS).join(Job, col(Job.id) == col(JobAllocation.job_id))
    connection, to = session.connection(), col(JobAllocation.to_seconds)
    found = [
        row
        for condition in (to > start, to.is_(None))  # apart: each has an index
        for row in connection.execute(asked.where(*begun, condition))
    ]
    return [SpanRow(*row) for row in found]


class EndingRow(NamedTuple):
    """GPUs that the processes of an attempt held after they were asked to end."""

    job_id: str
    from_seconds: float
    to_seconds: float | None
    gpu_type: str
    gpus_by_node: Mapping[str, Sequence[int]]
    gpu_count: int
    tenant_id: str
    owner_id: str
    model: str
    labels: Mapping[str, str]


_ENDING: list[Any] = [
    col(AttemptRow.job_id),
    col(AttemptRow.stop_seconds),
    col(AttemptRow.ended_seconds),
    col(AttemptRow.gpu_type),
    col(AttemptRow.gpus_by_node),
    col(AttemptRow.gpu_count),
    *(col(getattr(Job, name)) for name in ("tenant_id", "owner_id", "model", "labels")),
]


def endings_between(session: Session, cluster_id: str, start: float, end: float) -> list[EndingRow]:
    """List the attempts that were asked to end and held GPUs in a window until they had."""
    asked = (
        sa.select(*_ENDING)
        .join(Job, col(Job.id) == col(AttemptRow.job_id))
        .where(
            col(AttemptRow.cluster_id) == cluster_id,
            col(AttemptRow.stop_reason).in_(STOPPED),
            col(AttemptRow.queued_seconds).is_not(None),
            col(AttemptRow.stop_seconds) < end,
        )
    )
    connection, ended = session.connection(), col(AttemptRow.ended_seconds)
    return [
        EndingRow(*row)
        for condition in (ended > start, ended.is_(None))
        for row in connection.execute(asked.where(condition))
    ]


def readings_around(
    session: Session, cluster_id: str, start: float, end: float
) -> Mapping[str, Sequence[AllocationReading]]:
    """Return the counters read in a window, last before it and first after it, by job."""
    at = col(AllocationReading.at_seconds)
    mine = col(AllocationReading.cluster_id) == cluster_id
    before = session.exec(select(sa.func.max(at)).where(mine, at <= start)).one()
    after = session.exec(select(sa.func.min(at)).where(mine, at >= end)).one()
    statement = select(AllocationReading).where(mine, at >= (start if before is None else before))
    if after is not None:
        statement = statement.where(at <= after)
    found: dict[str, list[AllocationReading]] = defaultdict(list)
    for row in session.exec(statement.order_by(at)):
        found[row.job_id].append(row)
    return found


class RoundRow(NamedTuple):
    at_seconds: float
    gpus_by_type: Mapping[str, Mapping[str, int]]


def rounds_between(session: Session, cluster_id: str, start: float, end: float) -> list[RoundRow]:
    """List the rounds of a window, and the last one before it, in order."""
    at = col(Round.at_seconds)
    mine = col(Round.cluster_id) == cluster_id
    before = session.exec(select(sa.func.max(at)).where(mine, at <= start)).one()
    columns = (at, col(Round.gpus_by_type))
    statement = sa.select(*columns).where(
        mine, at >= (start if before is None else before), at < end
    )
    return [RoundRow(*row) for row in session.connection().execute(statement.order_by(at))]


def round_span(session: Session, cluster_id: str) -> tuple[float, float] | None:
    """Return the cluster times of the oldest round that is kept and of the latest."""
    at = col(Round.at_seconds)
    found = session.exec(
        select(sa.func.min(at), sa.func.max(at)).where(Round.cluster_id == cluster_id)
    ).one()
    return None if found[0] is None else (float(found[0]), float(found[1]))


def gpu_types_seen(session: Session, cluster_id: str) -> Sequence[str]:
    """List the GPU types of days that were summed up: some may be gone from the cluster."""
    statement = select(CapacityDay.gpu_type).where(CapacityDay.cluster_id == cluster_id).distinct()
    return sorted(session.exec(statement))


def summed_days(
    session: Session, cluster_id: str, first: date = date.min, last: date = date.max
) -> Sequence[date]:
    """List the days within these that were summed up, in order."""
    day = col(SummedDay.day)
    statement = sa.select(day).where(
        col(SummedDay.cluster_id) == cluster_id, day.between(first, last)
    )
    return session.connection().execute(statement.order_by(day)).scalars().all()


def first_folded(session: Session, cluster_id: str) -> list[date]:
    """Return the first day of which anything is kept, if there is one."""
    statement = sa.select(sa.func.min(col(CapacityDay.day))).where(
        col(CapacityDay.cluster_id) == cluster_id
    )
    found: date | None = session.connection().execute(statement).scalar()
    return [] if found is None else [found]
