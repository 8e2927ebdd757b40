"""Plays rounds of a live cluster without applying them.

They show what the next round would give a job after a change of its request. Uses the loop, policy,
placer and executor of a live step on the same state, but writes nothing. backend/jobs/remedies/
selects what to try.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sqlmodel import Session, select

from backend.clusters.topology import capacity_by_type
from backend.ids import new_id
from backend.jobs.remedies import DrainedNode, Room, Stage, Start, Trial
from backend.models import Cluster as ClusterRow
from backend.models import Job as JobRow
from backend.models import Node as NodeRow
from backend.models import Round, Tenant
from backend.reservations.repository import tenant_names
from maat.scheduling.explain import Reasons
from maat.scheduling.job import Job
from maat.scheduling.quotas import TenantQuota
from maat.scheduling.round_result import RoundResult
from maat.scheduling.rounds import Changes, ClusterState, StoredState
from maat.scheduling.weights import weighs_jobs
from maat.vocabulary import JobState
from worker.executors import EXECUTORS
from worker.executors.protocol import LiveExecutor, News, Restoration
from worker.live.cluster import FixedClock, restoration_of
from worker.live.interference import known_interference
from worker.live.snapshot import Snapshot, next_round_at, snapshot_of
from worker.rehearsals.alone import LoneTrials
from worker.rehearsals.last_round import stored_by_rounds, unapplied_changes
from worker.rehearsals.tried_rounds import Rules, observed, played


class LiveRehearsal:
    """Stages of live clusters, read from the database."""

    def __init__(self) -> None:
        self._alone = LoneTrials()

    def stage(self, session: Session, job: JobRow) -> Stage | None:
        cluster = session.get_one(ClusterRow, job.cluster_id)
        entry = EXECUTORS.get(cluster.executor)
        if entry is None:
            return None
        snapshot = snapshot_of(session, cluster)
        if snapshot is None:
            return None
        return LiveStage(
            snapshot,
            job,
            stored_by_rounds(session, cluster),
            unapplied_changes(session, cluster),
            _last_round_seconds(session, cluster),
            entry.restore,
            None if entry.seconds_until_seen is None else entry.seconds_until_seen(),
            tenant_names(session, [job.tenant_id]),
            session.get_one(Tenant, job.tenant_id).weight,
            known_interference(session, cluster, snapshot.interference),
        )

    def never_started(
        self, session: Session, cluster: ClusterRow, jobs: Sequence[JobRow]
    ) -> Mapping[str, Reasons]:
        return self._alone.never_started(session, cluster, jobs)


@dataclass(frozen=True)
class LiveStage:
    """A cluster and one of its jobs, which need not be stored yet.

    A stored job is tried as it stands, when the next round is due. A new one is tried at the moment
    when, submitted now, it would have been profiled: `seconds_until_seen` from now. That is None if
    the executor acts on a world of its own, and measures the job there first.
    """

    snapshot: Snapshot
    job: JobRow
    stored: StoredState
    unapplied: Sequence[Changes]
    last_round_seconds: float
    restore: Callable[[Restoration], LiveExecutor]
    seconds_until_seen: float | None
    tenants: Mapping[str, str]
    tenant_weight: float
    interference: Mapping[tuple[str, str, int], float]

    @property
    def executor(self) -> str:
        return self.snapshot.cluster.executor

    @property
    def capacity_by_type(self) -> Mapping[str, int]:
        return capacity_by_type(self.snapshot.nodes, usable_only=False)

    @property
    def drained_nodes(self) -> Sequence[DrainedNode]:
        return [
            DrainedNode(node.id, node.name, node.gpu_type, len(node.drained_gpus))
            for node in self.snapshot.nodes
            if node.drained_gpus and node.fault is None
        ]

    @property
    def weighs_jobs(self) -> bool:
        policy, _ = self.snapshot.cluster.parts.built_or_missing()
        return weighs_jobs(policy)

    def room(self) -> Room:
        cluster, held = self._others.cluster, self._without_it.placement.placement.gpus
        free = np.flatnonzero(
            cluster.gpu_available & ~np.isin(np.arange(len(cluster.gpu_node)), held)
        )
        by_type: Counter[str] = Counter(
            cluster.type_names[kind] for kind in cluster.gpu_type_of[free].tolist()
        )
        most: dict[str, int] = {}
        for node, count in Counter(cluster.gpu_node[free].tolist()).items():
            kind = cluster.nodes[node].gpu_type
            most[kind] = max(most.get(kind, 0), count)
        return Room(by_type, most)

    def trial_of_new(self) -> Trial | None:
        if self.seconds_until_seen is None:
            return None
        again = _as_new(self.job, at=self.snapshot.now)
        seen = self._as_seen(again)
        state = replace(self._others, jobs=(*self._others.jobs, *seen))
        return _trial(self._round(state, at=self._when), state, again.id)

    def trial_of(
        self,
        changes: Mapping[str, Any],
        *,
        tenant_weight: float | None = None,
        returned: Collection[str] = (),
    ) -> Trial:
        changed = JobRow(**(self.job.model_dump() | dict(changes)))
        at = next_round_at(self.snapshot)
        begin = restoration_of(_with_returned(self.snapshot, returned), FixedClock(at))
        rows = [changed if row.id == changed.id else row for row in begin.news.jobs]
        with_it = replace(begin, news=replace(begin.news, jobs=rows))
        state = observed(self.restore, with_it, self.unapplied)
        quotas = self.snapshot.quotas
        if tenant_weight is not None:
            quotas = _with_weight(quotas, self.tenants[self.job.tenant_id], tenant_weight)
        played = self._round(state, at=at, quotas=quotas)
        return _trial(played, state, changed.id)

    @cached_property
    def _when(self) -> float:
        return self.snapshot.now + (self.seconds_until_seen or 0.0)

    @cached_property
    def _others(self) -> ClusterState:
        """The other jobs at that moment, with the changes of the last round applied."""
        begin = self._restoration
        cancelled = [*begin.news.cancelled, self.job.id]
        without = replace(begin, news=replace(begin.news, cancelled=cancelled))
        return observed(self.restore, without, self.unapplied)

    @cached_property
    def _without_it(self) -> RoundResult:
        return self._round(self._others, at=self._when)

    def _as_seen(self, row: JobRow) -> tuple[Job, ...]:
        """Return a newly submitted job as the scheduler sees it once it is profiled."""
        begin = self._restoration
        alone = replace(begin, news=News([row], self.tenants, ()), state=None, numbers=None)
        return self.restore(alone).observe().state.jobs

    @cached_property
    def _restoration(self) -> Restoration:
        return restoration_of(self.snapshot, FixedClock(self._when))

    def _round(
        self, state: ClusterState, *, at: float, quotas: tuple[TenantQuota, ...] | None = None
    ) -> RoundResult:
        kept = self.snapshot.quotas if quotas is None else quotas
        rules = Rules(self.stored, self.snapshot.reservations, kept, self.interference)
        return played(self.snapshot.cluster, state, rules, at=at)


def _trial(result: RoundResult, state: ClusterState, job_id: str) -> Trial:
    return Trial(_start(result, state, job_id), result.reasons.get(job_id))


def _start(result: RoundResult, state: ClusterState, job_id: str) -> Start | None:
    gpus = result.placement.placement.by_job.get(job_id)
    if not gpus:
        return None
    cluster = state.cluster
    nodes = np.unique(cluster.gpu_node[list(gpus)])
    return Start(cluster.type_names[cluster.gpu_type_of[gpus[0]]], len(gpus), len(nodes))


def _with_returned(snapshot: Snapshot, returned: Collection[str]) -> Snapshot:
    nodes = [
        NodeRow(**(node.model_dump() | {"drained_gpus": []})) if node.id in returned else node
        for node in snapshot.nodes
    ]
    return replace(snapshot, nodes=nodes)


def _with_weight(
    quotas: tuple[TenantQuota, ...], tenant: str, weight: float
) -> tuple[TenantQuota, ...]:
    others = tuple(quota for quota in quotas if quota.tenant != tenant)
    own = next((quota for quota in quotas if quota.tenant == tenant), TenantQuota(tenant=tenant))
    return (*others, replace(own, weight=weight))


def _as_new(row: JobRow, *, at: float) -> JobRow:
    """Return the job as it would be submitted now. It is not a row of the database."""
    fresh = {
        "id": new_id("job"),
        "state": JobState.SUBMITTED.value,
        "submitted_seconds": at,
        "gpus": None,
        "gpu_type": None,
    }
    return JobRow(**(row.model_dump() | fresh))


def _last_round_seconds(session: Session, cluster: ClusterRow) -> float:
    """Return the CPU seconds of the last round; zero before the first."""
    number = cluster.next_round_number - 1
    statement = select(Round.policy_seconds, Round.place_seconds).where(
        Round.cluster_id == cluster.id, Round.number == number
    )
    return sum(session.exec(statement).first() or ())
