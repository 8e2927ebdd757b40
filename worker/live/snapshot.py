"""What a step of a live cluster starts from, read at one moment.

Decides only whether a round is due.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session, col, select

from backend.clocktime import Moment, cluster_seconds
from backend.clusters.interference import interference_of
from backend.clusters.repository import nodes_of
from backend.models import Cluster as ClusterRow
from backend.models import ClusterRuntime, Round
from backend.models import Job as JobRow
from backend.models import Node as NodeRow
from backend.moments import moment_of
from backend.quotas.repository import engine_quotas
from backend.reservations.repository import engine_reservations, standing, tenant_names
from maat.scheduling.events import TERMINAL
from maat.scheduling.interference import DeclaredSlowdowns
from maat.scheduling.job import JobId
from maat.scheduling.quotas import TenantQuota
from maat.scheduling.reservations import Reservation
from worker.executors import EXECUTORS
from worker.executors.protocol import News, StoredState
from worker.jobs.pauses import paused_jobs
from worker.rounds.event_memory import REMEMBERED_SECONDS, Told, told_since
from worker.rounds.executor_rows import stored_state


@dataclass(frozen=True)
class Snapshot:
    """The state that a step starts from.

    `news`: every unfinished job, and which of them were asked to end. `told`: the events since
    `told_since`. `last_at`: cluster time of the last round; None before the first. `now`: cluster
    time of the step, at `moment`. `interference`: as declared; None if no GPU can be shared.
    """

    cluster: ClusterRow
    nodes: Sequence[NodeRow]
    news: News
    told: Sequence[Told]
    told_since: float
    last_at: float | None
    reservations: tuple[Reservation, ...]
    quotas: tuple[TenantQuota, ...]
    interference: DeclaredSlowdowns | None
    executor_state: StoredState | None
    moment: Moment
    now: float


def snapshot_of(session: Session, cluster: ClusterRow) -> Snapshot | None:
    """Read the state; return None if the cluster has no node."""
    nodes = nodes_of(session, cluster.id)
    if not nodes:
        return None
    jobs, moment = list(session.exec(_unfinished(select(JobRow), cluster.id))), moment_of(session)
    last = _last_round_at(session, cluster)
    since = -math.inf if last is None else last - REMEMBERED_SECONDS
    return Snapshot(
        cluster,
        nodes,
        _news(session, cluster, jobs, [job.id for job in jobs if job.cancel_requested]),
        told=told_since(session, cluster.id, since) if last is not None else (),
        told_since=since,
        last_at=last,
        reservations=reservations_at(session, cluster, moment),
        quotas=engine_quotas(session, cluster.id),
        interference=interference_of(session, cluster),
        executor_state=stored_state(session, session.get(ClusterRuntime, cluster.id)),
        moment=moment,
        now=cluster_seconds(cluster, moment),
    )


def news_of(session: Session, cluster: ClusterRow, known: Mapping[JobId, int]) -> News | None:
    """Read the news; return None if somebody ended a known job or changed its declaration.

    `known`: the version of each job's declaration.
    """
    columns = (col(JobRow.id), col(JobRow.cancel_requested), col(JobRow.declared_version))
    rows = session.exec(_unfinished(select(*columns), cluster.id)).all()
    found = {job_id: cancelled for job_id, cancelled, _ in rows}
    declared = {job_id: version for job_id, _, version in rows}
    before = known.keys()
    if any(declared.get(job_id) != version for job_id, version in known.items()):
        return None
    fresh = found.keys() - before
    jobs = (
        list(session.exec(_unfinished(select(JobRow), cluster.id).where(col(JobRow.id).in_(fresh))))
        if fresh
        else []
    )
    cancelled = [job_id for job_id in before if found[job_id]]
    asked = [job.id for job in jobs if job.cancel_requested]
    return _news(session, cluster, jobs, [*cancelled, *asked])


def _news(
    session: Session, cluster: ClusterRow, jobs: Sequence[JobRow], cancelled: Sequence[JobId]
) -> News:
    read = EXECUTORS[cluster.executor].read
    return News(
        jobs,
        tenant_names(session, [job.tenant_id for job in jobs]),
        cancelled,
        None if read is None else read(session, cluster),
        *paused_jobs(session, cluster.id),
    )


def reservations_at(
    session: Session, cluster: ClusterRow, moment: Moment
) -> tuple[Reservation, ...]:
    return engine_reservations(
        session, standing(session, cluster.id, now=cluster_seconds(cluster, moment))
    )


def is_due(session: Session, cluster: ClusterRow, moment: Moment) -> bool:
    """Return whether a round is due: once in every interval of cluster time.

    No round follows directly after a late one, and missed intervals are not made up.
    """
    if cluster.paused:
        return False
    last = _last_round_at(session, cluster)
    return last is None or cluster_seconds(cluster, moment) >= due_after(
        last, cluster.round_seconds
    )


def due_after(last: float, interval: float) -> float:
    """Return when a round is due after the last one: at a multiple of the interval.

    After a late one it is due no sooner than half an interval later.
    """
    return max((last // interval + 1) * interval, last + interval / 2)


def next_round_at(snapshot: Snapshot) -> float:
    """Return the cluster time at which the next round is due; now, if it is due already."""
    last = snapshot.last_at
    if last is None:
        return snapshot.now
    return max(snapshot.now, due_after(last, snapshot.cluster.round_seconds))


def _last_round_at(session: Session, cluster: ClusterRow) -> float | None:
    """Return the cluster time of the last round; None before the first."""
    number = cluster.next_round_number - 1
    statement = select(Round.at_seconds).where(
        Round.cluster_id == cluster.id, Round.number == number
    )
    return session.exec(statement).first()


def _unfinished(statement: Any, cluster_id: str) -> Any:
    ended = [state.value for state in TERMINAL]
    # The first condition has an index.
    under_way = (col(JobRow.finished_seconds).is_(None), col(JobRow.state).not_in(ended))
    return statement.where(col(JobRow.cluster_id) == cluster_id, *under_way).order_by(
        col(JobRow.submitted_seconds), col(JobRow.id)
    )
