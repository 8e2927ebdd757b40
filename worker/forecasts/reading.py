"""Reads the present state of a live cluster, as a forecast begins from it. Writes nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlmodel import Session, col, select

from backend.clusters.topology import engine_cluster
from backend.models import Cluster as ClusterRow
from backend.models import Job as JobRow
from backend.models import JobAllocation, JobDependency
from maat.forecasting.draws import Unknown
from maat.forecasting.present import Present, PresentJob, WaitingJob
from maat.scheduling.explain import ReasonCode
from maat.scheduling.job import Job, JobId
from maat.scheduling.rounds import Changes, StoredState
from worker.executors import EXECUTORS
from worker.executors.numbering import renumbered_changes
from worker.executors.protocol import JobStatus, Observation
from worker.forecasts.past import unknown_of
from worker.forecasts.specs import Specs
from worker.jobs.pauses import without_paused
from worker.live.cluster import FixedClock, restoration_of
from worker.live.interference import known_interference, played_interference
from worker.live.snapshot import Snapshot, next_round_at, snapshot_of
from worker.rehearsals.last_round import stored_by_rounds, unapplied_changes


@dataclass(frozen=True)
class Reading:
    """The rows of a cluster at one moment: a forecast is made from them without a database.

    `since`: of jobs with GPUs, when their present span began. `needs`: what jobs wait for.
    `interference`: what decisions know; `slowdowns`: what is played (Present).
    """

    snapshot: Snapshot
    stored: StoredState
    unapplied: Sequence[Changes]
    since: Mapping[JobId, float]
    needs: Mapping[JobId, frozenset[JobId]]
    interference: Mapping[tuple[str, str, int], float]
    slowdowns: Mapping[tuple[str, str, int], float] | None
    specs: Specs
    unknown: Unknown

    @property
    def round_number(self) -> int:
        """Return the number of the last round; 0 before the first."""
        return self.snapshot.cluster.next_round_number - 1

    def present(self) -> Present:
        """Return the state as a round would see it now."""
        snapshot, row = self.snapshot, self.snapshot.cluster
        policy, placer = row.parts.built_or_missing()
        seen = self._observed()
        statuses = {status.job_id: status for status in seen.statuses}
        jobs = tuple(self._seen(job, statuses.get(job.id)) for job in seen.state.jobs)
        return Present(
            now=snapshot.now,
            next_round_at=next_round_at(snapshot),
            round_seconds=row.round_seconds,
            cluster=seen.state.cluster,
            policy=policy,
            placer=placer,
            jobs=jobs,
            waiting=tuple(self._waiting({job.job.id for job in jobs}, statuses)),
            state=self.stored,
            reservations=snapshot.reservations,
            quotas=snapshot.quotas,
            interference=self.interference,
            slowdowns=self.slowdowns,
            stability=row.stability,
        )

    def _observed(self) -> Observation:
        """Ask a copy of the executor, which acts on nothing: its writes are not stored."""
        snapshot = self.snapshot
        begin = restoration_of(snapshot, FixedClock(snapshot.now))
        executor = EXECUTORS[snapshot.cluster.executor].restore(begin)
        for changes in self.unapplied:
            executor.apply(
                changes if begin.numbers is None else renumbered_changes(changes, begin.numbers)
            )
        return without_paused(executor.observe(), snapshot.news.paused)

    def _seen(self, job: Job, status: JobStatus | None) -> PresentJob:
        left = 0.0
        if job.restarting:
            since = self.since.get(job.id, self.snapshot.now)
            left = max(job.spec.restart_seconds - (self.snapshot.now - since), 1.0)
        return PresentJob(job, left, None if status is None else status.plan)

    def _waiting(
        self, seen: set[JobId], statuses: Mapping[JobId, JobStatus]
    ) -> Iterator[WaitingJob]:
        """Yield the jobs that rounds do not see yet, without those that nobody can foretell.

        Those are paused by a person, asked to end, or follow a job that is none of these.
        """
        news, found = self.snapshot.news, dict[JobId, WaitingJob]()
        for row in news.jobs:
            status, pause = statuses.get(row.id), news.paused.get(row.id)
            follows = pause is not None and pause.code is ReasonCode.WAITING_DEPENDENCY
            ends = row.id in news.cancelled or (status is not None and status.ended is not None)
            if row.id in seen or ends or (pause is not None and not follows):
                continue
            spec = self.specs.spec(row)
            if spec is not None:
                needs = self.needs.get(row.id, frozenset()) if follows else frozenset[JobId]()
                found[row.id] = WaitingJob(spec, needs)
        while lost := [i for i, one in found.items() if not one.after <= seen | found.keys()]:
            for job_id in lost:
                del found[job_id]
        yield from found.values()


def read(session: Session, cluster: ClusterRow, *, asked: str | None = None) -> Reading | None:
    """Read a cluster; return None if it has no node or an executor of another version.

    `asked`: the model of a job that is not submitted, of which the past is read too.
    """
    snapshot = snapshot_of(session, cluster) if cluster.executor in EXECUTORS else None
    if snapshot is None:
        return None
    slowdowns = played_interference(session, cluster, snapshot.interference)
    specs = Specs.of(session, cluster, snapshot.nodes, snapshot.news.jobs)
    return Reading(
        snapshot,
        stored_by_rounds(session, cluster),
        unapplied_changes(session, cluster),
        _spans(session, cluster.id),
        _needs(session, cluster.id),
        known_interference(session, cluster, snapshot.interference),
        slowdowns,
        specs,
        unknown_of(
            session,
            cluster,
            snapshot.now,
            specs,
            snapshot.news.jobs,
            shape=engine_cluster(snapshot.nodes, jobs_per_gpu=cluster.jobs_per_gpu),
            last_at=0.0 if snapshot.last_at is None else snapshot.last_at,
            asked=asked,
            slowdowns=slowdowns,
        ),
    )


def _spans(session: Session, cluster_id: str) -> Mapping[JobId, float]:
    holding = select(JobRow.id).where(
        JobRow.cluster_id == cluster_id, col(JobRow.finished_seconds).is_(None)
    )
    rows = select(JobAllocation.job_id, JobAllocation.from_seconds).where(
        col(JobAllocation.job_id).in_(holding), col(JobAllocation.to_seconds).is_(None)
    )
    return dict(session.exec(rows).all())


def _needs(session: Session, cluster_id: str) -> Mapping[JobId, frozenset[JobId]]:
    rows = select(JobDependency.job_id, JobDependency.needed_id).where(
        JobDependency.cluster_id == cluster_id, col(JobDependency.is_open)
    )
    found: dict[JobId, set[JobId]] = defaultdict(set)
    for job_id, needed in session.exec(rows):
        found[job_id].add(needed)
    return {job_id: frozenset(needed) for job_id, needed in found.items()}
