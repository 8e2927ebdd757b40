"""What the database says of the whole deployment, in a fixed number of queries.

Their cost follows the active jobs, the nodes and the kinds of jobs, never the history.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col, func, select

from backend.attempts.models import AttemptRow
from backend.clocktime import cluster_seconds
from backend.clusters.models import Cluster, Node
from backend.columns import WithoutIndex
from backend.health.models import WorkerHeartbeat
from backend.jobs.models import Job, JobCount, JobEvent
from backend.moments import moment_of
from backend.operations.models import Operation, OperationState
from backend.reports.models import ReportDelivery
from backend.rounds.models import OutboxMessage, Round
from backend.webhooks.models import WebhookDelivery
from maat.vocabulary import JobState

_WAITING = (JobState.SUBMITTED, JobState.PENDING, JobState.PREEMPTED)
_OPEN = (OperationState.QUEUED.value, OperationState.RUNNING.value)


@dataclass(frozen=True)
class LastRound:
    number: int
    age_seconds: float
    solve_seconds: float | None
    policy_seconds: float
    place_seconds: float
    used_by_type: Mapping[str, int]


@dataclass(frozen=True)
class Active:
    """The unfinished jobs of a cluster. Waits are cluster time."""

    restarts: int
    waiting: int
    longest_wait_seconds: float
    total_wait_seconds: float


@dataclass(frozen=True)
class ClusterFigures:
    name: str
    paused: bool
    faulty: bool
    round_wall_seconds: float
    lease_seconds: float | None
    jobs: Mapping[str, int]
    gpus: Mapping[str, int]
    drained: Mapping[str, int]
    active: Active
    attempts: Mapping[str, int]
    changes_to_apply: int
    last: LastRound | None


@dataclass(frozen=True)
class Work:
    """Work of one kind that has not ended. `oldest_seconds`: since it was asked for."""

    kind: str
    state: str
    count: int
    oldest_seconds: float


@dataclass(frozen=True)
class Snapshot:
    at: datetime
    clusters: Sequence[ClusterFigures]
    work: Sequence[Work]
    workers: Sequence[WorkerHeartbeat]
    database_bytes: int
    last_job_event: int


def take_snapshot(session: Session) -> Snapshot:
    now = moment_of(session)
    clusters = session.exec(select(Cluster).order_by(col(Cluster.id))).all()
    rounds = {row.cluster_id: row for row in session.execute(_last_rounds())}
    jobs = _jobs(session)
    nodes = _nodes(session)
    active = _active(session)
    attempts = _attempts(session)
    outbox = _outbox(session)
    found = []
    for cluster in clusters:
        last = rounds.get(cluster.id)
        since = cluster.lease_until
        found.append(
            ClusterFigures(
                name=cluster.name,
                paused=cluster.paused,
                faulty=cluster.fault is not None,
                round_wall_seconds=cluster.round_seconds / cluster.speed,
                lease_seconds=None if since is None else (since - now.wall).total_seconds(),
                jobs=jobs.get(cluster.id, {}),
                gpus=nodes.get(cluster.id, ({}, {}))[0],
                drained=nodes.get(cluster.id, ({}, {}))[1],
                active=_waits(active.get(cluster.id, ()), cluster_seconds(cluster, now)),
                attempts=attempts.get(cluster.id, {}),
                changes_to_apply=outbox.get(cluster.id, 0),
                last=None if last is None else _round(last, now.wall),
            )
        )
    return Snapshot(
        at=now.wall,
        clusters=found,
        work=_work(session, now.wall),
        workers=session.exec(select(WorkerHeartbeat).order_by(col(WorkerHeartbeat.name))).all(),
        database_bytes=database_bytes(session),
        last_job_event=session.exec(select(func.max(JobEvent.id))).one() or 0,
    )


def database_bytes(session: Session) -> int:
    """Return the size of the database: of SQLite, its file without what waits in its journal."""
    if session.get_bind().dialect.name == "sqlite":
        pages, size = (
            session.execute(sa.text(f"PRAGMA {name}")).scalar_one()
            for name in ("page_count", "page_size")
        )
        return int(pages) * int(size)
    size = session.execute(sa.text("SELECT pg_database_size(current_database())")).scalar_one()
    return int(size)


def _last_rounds() -> Any:
    newest = (
        sa.select(func.max(col(Round.number)))
        .where(col(Round.cluster_id) == col(Cluster.id))
        .correlate(Cluster)
        .scalar_subquery()
    )
    return sa.select(
        col(Round.cluster_id),
        col(Round.number),
        col(Round.committed_at),
        col(Round.solve_seconds),
        col(Round.policy_seconds),
        col(Round.place_seconds),
        col(Round.gpus_by_type),
    ).join(Cluster, sa.and_(col(Round.cluster_id) == col(Cluster.id), col(Round.number) == newest))


def _round(row: Any, now: datetime) -> LastRound:
    return LastRound(
        number=row.number,
        age_seconds=(now - row.committed_at).total_seconds(),
        solve_seconds=row.solve_seconds,
        policy_seconds=row.policy_seconds,
        place_seconds=row.place_seconds,
        used_by_type={name: int(one["used"]) for name, one in row.gpus_by_type.items()},
    )


def _jobs(session: Session) -> dict[str, dict[str, int]]:
    total = func.sum(JobCount.change)
    statement = select(JobCount.cluster_id, JobCount.state, total).group_by(
        col(JobCount.cluster_id), col(JobCount.state)
    )
    return _by_cluster(session.exec(statement))


def _attempts(session: Session) -> dict[str, dict[str, int]]:
    statement = (
        select(AttemptRow.cluster_id, AttemptRow.state, func.count())
        .where(col(AttemptRow.state) != "ended")
        .group_by(col(AttemptRow.cluster_id), col(AttemptRow.state))
    )
    return _by_cluster(session.exec(statement))


def _by_cluster(rows: Any) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for cluster_id, state, count in rows:
        found.setdefault(cluster_id, {})[state] = int(count)
    return found


def _nodes(session: Session) -> dict[str, tuple[dict[str, int], dict[str, int]]]:
    """Return GPUs and drained GPUs by type, of every cluster."""
    columns = (Node.cluster_id, Node.gpu_type, Node.gpu_count, Node.drained_gpus)
    found: dict[str, tuple[dict[str, int], dict[str, int]]] = {}
    for cluster_id, gpu_type, count, drained in session.exec(select(*columns)):
        gpus, out = found.setdefault(cluster_id, ({}, {}))
        gpus[gpu_type] = gpus.get(gpu_type, 0) + count
        out[gpu_type] = out.get(gpu_type, 0) + len(drained)
    return found


def _active(session: Session) -> dict[str, list[Any]]:
    """Return the unfinished jobs of every cluster, summed up by state.

    Sums by state cost less than sums over the states that wait, which compare each job's. The index
    of unfinished jobs finds them; those of all jobs by state would lead through the history.
    """
    since = col(Job.submitted_seconds)
    statement = (
        sa.select(
            col(Job.cluster_id),
            col(Job.state),
            func.count().label("jobs"),
            func.sum(col(Job.restarts)).label("restarts"),
            func.min(since).label("first"),
            func.sum(since).label("total"),
        )
        .where(col(Job.finished_seconds).is_(None))
        .group_by(WithoutIndex(col(Job.cluster_id)), WithoutIndex(col(Job.state)))
    )
    found: dict[str, list[Any]] = {}
    for row in session.execute(statement):
        found.setdefault(row.cluster_id, []).append(row)
    return found


def _waits(rows: Sequence[Any], now: float) -> Active:
    restarts = sum(int(row.restarts) for row in rows)
    waiting = [row for row in rows if row.state in _WAITING]
    count = sum(int(row.jobs) for row in waiting)
    if not count:
        return Active(restarts, 0, 0.0, 0.0)
    longest = max(now - min(row.first for row in waiting), 0.0)
    return Active(restarts, count, longest, max(now * count - sum(r.total for r in waiting), 0.0))


def _outbox(session: Session) -> dict[str, int]:
    statement = (
        select(OutboxMessage.cluster_id, func.count())
        .where(col(OutboxMessage.applied_at).is_(None))
        .group_by(col(OutboxMessage.cluster_id))
    )
    return {cluster_id: int(count) for cluster_id, count in session.exec(statement)}


def _work(session: Session, now: datetime) -> list[Work]:
    operations = (
        select(Operation.kind, Operation.state, func.count(), func.min(Operation.created_at))
        .where(col(Operation.state).in_(_OPEN))
        .group_by(col(Operation.kind), col(Operation.state))
    )
    deliveries = (
        select(ReportDelivery.state, func.count(), func.min(ReportDelivery.due_at))
        .where(col(ReportDelivery.state).in_(_OPEN))
        .group_by(col(ReportDelivery.state))
    )
    messages = (
        select(WebhookDelivery.state, func.count(), func.min(WebhookDelivery.created_at))
        .where(col(WebhookDelivery.finished_at).is_(None))
        .group_by(col(WebhookDelivery.state))
    )
    rows: list[tuple[str, str, int, datetime]] = [
        *session.exec(operations).all(),
        *(("report-delivery", *row) for row in session.exec(deliveries)),
        *(("webhook-delivery", *row) for row in session.exec(messages)),
    ]
    return [
        Work(kind, state, int(count), max((now - oldest).total_seconds(), 0.0))
        for kind, state, count, oldest in rows
    ]
