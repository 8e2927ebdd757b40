"""One step of a live cluster: is it due, who may make it, from which state, and what is kept of it. Knows no broker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlmodel import Session, col, select

from backend.clocktime import cluster_seconds, utc_now
from backend.clusters.repository import all_clusters, nodes_of
from backend.clusters.topology import engine_cluster
from backend.database import Database
from backend.models import Cluster as ClusterRow
from backend.models import ClusterRuntime, Round
from backend.models import Job as JobRow
from backend.models import Node as NodeRow
from backend.reservations.repository import engine_reservations, standing, tenant_names
from maat.scheduling.events import TERMINAL, Event
from maat.scheduling.loop import RoundLoop
from maat.scheduling.placement import PLACERS
from maat.scheduling.policies import POLICIES
from maat.scheduling.reservations import Reservation
from maat.scheduling.rounds import Changes, ClusterState, RoundResult
from maat.simulation.models import Model, catalog_models
from worker.job_journal import JobJournal
from worker.lease import leased
from worker.live_executor import FixedClock, LiveExecutor
from worker.round_store import SqlRoundStore


def due_clusters(database: Database) -> list[str]:
    """Clusters whose next round is due now."""
    with database.session_scope(writes=False) as session:
        return [row.id for row in all_clusters(session) if _is_due(session, row)]


def step_cluster(database: Database, cluster_id: str) -> int | None:
    """Make the cluster's next round, if it is due and nobody else is at it. Gives the number of the round that was committed."""
    with leased(database, cluster_id) as fencing:
        if fencing is None:
            return None
        snapshot = read_snapshot(database, cluster_id)
        if snapshot is None:
            return None
        stepped = round_loop(database, snapshot, fencing=fencing).step()
        return None if stepped is None else stepped[0].round_number


@dataclass(frozen=True)
class Snapshot:
    """All that a step begins with, read at one moment. `tenants`: names by id, of those that have jobs. `now`: cluster time of the step."""

    cluster: ClusterRow
    nodes: Sequence[NodeRow]
    jobs: Sequence[JobRow]
    tenants: Mapping[str, str]
    reservations: tuple[Reservation, ...]
    executor_state: Mapping[str, Any] | None
    now: float


def read_snapshot(database: Database, cluster_id: str) -> Snapshot | None:
    """None where the cluster is gone, or its round is not due (any more)."""
    with database.session_scope(writes=False) as session:
        cluster = session.get(ClusterRow, cluster_id)
        if cluster is None or not _is_due(session, cluster):
            return None
        nodes, jobs = nodes_of(session, cluster_id), _active_jobs(session, cluster_id)
        if not nodes:
            return None
        runtime, now = session.get(ClusterRuntime, cluster_id), cluster_seconds(cluster, utc_now())
        return Snapshot(
            cluster,
            nodes,
            jobs,
            tenants=tenant_names(session, [job.tenant_id for job in jobs]),
            reservations=engine_reservations(session, standing(session, cluster_id, now=now)),
            executor_state=None if runtime is None else runtime.executor_state,
            now=now,
        )


def round_loop(database: Database, snapshot: Snapshot, *, fencing: int) -> RoundLoop:
    """The round loop of a live cluster, standing where its last round left it."""
    row, clock = snapshot.cluster, FixedClock(snapshot.now)
    executor = LiveExecutor(
        engine_cluster(snapshot.nodes), clock, snapshot.jobs, live_models(), snapshot.executor_state, tenants=snapshot.tenants
    )
    keeper = LiveKeeper(executor, JobJournal(snapshot.jobs, cluster_id=row.id))
    return RoundLoop(
        policy=POLICIES.build(row.policy, row.policy_parameters),
        placer=PLACERS.build(row.placer, row.placer_parameters),
        executor=executor,
        store=SqlRoundStore(database, row.id, fencing=fencing, keeper=keeper),
        clock=clock,
        reservations=snapshot.reservations,
        round_seconds=row.round_seconds,
    )


class LiveKeeper:
    """What is kept of a live round beside the round: how every job stands, and the executor's state."""

    def __init__(self, executor: LiveExecutor, journal: JobJournal) -> None:
        self._executor, self._journal = executor, journal

    def keep_round(self, session: Session, result: RoundResult, observed: ClusterState) -> None:
        number, simulated = result.round_number, self._executor.simulated
        for job in (*simulated.jobs.values(), *simulated.finished.values()):
            self._journal.saw(job)
        for event in observed.events:
            self._journal.happened(event, round_number=number)
        for job in simulated.jobs.values():
            if job.allocation is None:
                self._journal.holds(job.spec.id, None, observed.cluster, at=observed.now, round_number=number)
            elif self._executor.was_renumbered:
                self._journal.renumbered(job.spec.id, job.allocation)
        self._journal.explained(result.reasons, round_number=number)
        self._journal.write(session)

    def keep_applied(self, session: Session, changes: Changes, events: Sequence[Event]) -> None:
        number, jobs = changes.round_number, self._executor.simulated.jobs
        for event in events:
            self._journal.happened(event, round_number=number)
        for job in (jobs[change.job_id] for change in changes.items if change.job_id in jobs):
            self._journal.holds(job.spec.id, job.allocation, self._executor.cluster, at=changes.time, round_number=number)
            self._journal.saw(job)
        self._journal.write(session)

    def executor_state(self) -> Mapping[str, Any]:
        return self._executor.state()


@lru_cache(maxsize=1)
def live_models() -> Mapping[str, Model]:
    """The catalog, read once per process."""
    return catalog_models()


def _is_due(session: Session, cluster: ClusterRow) -> bool:
    """Rounds are due once in every interval of cluster time, and not right after one that came late; intervals that passed without one are
    not made up."""
    if cluster.paused:
        return False
    last = session.exec(
        select(Round.at_seconds).where(Round.cluster_id == cluster.id, Round.number == cluster.next_round_number - 1)
    ).first()
    now = cluster_seconds(cluster, utc_now())
    if last is None:
        return True
    interval = cluster.round_seconds
    return now // interval > last // interval and now - last >= interval / 2


def _active_jobs(session: Session, cluster_id: str) -> list[JobRow]:
    ended = [state.value for state in TERMINAL]
    statement = (
        select(JobRow)
        .where(JobRow.cluster_id == cluster_id, col(JobRow.state).not_in(ended))
        .order_by(col(JobRow.submitted_seconds), col(JobRow.id))
    )
    return list(session.exec(statement))
