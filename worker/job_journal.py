"""What one step of a cluster changes about its jobs: gathered in memory as it happens, written in the round's transaction.

The rows given are the journal's own: nobody else changes these columns while the lease is held. States pass only as
maat.scheduling.events allows; anything else is logged and not written.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session

from backend.models import Job as JobRow
from backend.models import JobAllocation, JobEvent
from maat.scheduling.cluster import Cluster
from maat.scheduling.events import TERMINAL, Event, EventKind, JobState, may_follow
from maat.scheduling.explain import ReasonCode, Reasons
from maat.scheduling.job import Allocation, JobId
from maat.simulation.adaptive_job import SimulatedJob
from worker.changes_json import batch_to_json
from worker.round_rows import finite_values

log = logging.getLogger(__name__)

_WRITTEN = (
    "state",
    "started_seconds",
    "finished_seconds",
    "progress",
    "remaining_work",
    "gpu_seconds",
    "restarts",
    "goodput",
    "gpu_type",
    "gpus",
    "batch",
    "reason_code",
    "reason_evidence",
    "as_of_round",
)
_NO_BATCH = {"total_batch_size": None, "per_gpu_batch_size": None, "accumulation_steps": None}


class JobJournal:
    """Jobs of one cluster that had not ended when the step began."""

    def __init__(self, rows: Iterable[JobRow], *, cluster_id: str) -> None:
        self.rows: dict[JobId, JobRow] = {row.id: row for row in rows}
        self._cluster_id = cluster_id
        self._changed: dict[JobId, None] = {}
        self._events: list[dict[str, Any]] = []
        self._closed: list[dict[str, Any]] = []
        self._opened: list[dict[str, Any]] = []
        self._planned: list[dict[str, Any]] = []

    def happened(self, event: Event, *, round_number: int | None) -> None:
        """An event of the executor: the job passes to its state, where it may."""
        row = self.rows.get(event.job_id)
        if row is None:
            return
        before, kind, after = JobState(row.state), event.kind, event.state
        if after is before:
            kind, after = EventKind.ALLOCATED, None
        if after is not None:
            if not may_follow(before, after):
                log.error("job %s is %s and cannot become %s: passed over", row.id, before.value, after.value)
                return
            self._pass_to(row, after, event.time)
        self._events.append(
            {
                "job_id": row.id,
                "cluster_id": self._cluster_id,
                "round_number": round_number,
                "cluster_seconds": event.time,
                "kind": kind.value,
                "state": None if after is None else after.value,
                "data": dict(event.data),
            }
        )

    def saw(self, job: SimulatedJob) -> None:
        """How a job stands when it is looked at."""
        row = self.rows.get(job.spec.id)
        if row is None:
            return
        row.progress = min(job.done_work / job.total_work, 1.0) if job.total_work > 0 else 1.0
        row.remaining_work = max(job.total_work - job.done_work, 0.0)
        row.gpu_seconds = sum(job.gpu_seconds.values())
        row.restarts = job.restarts
        row.started_seconds = job.started_at
        running = job.finished_at is None and job.allocation is not None
        row.goodput = job.goodput if running and job.goodput > 0 else None
        plan = None if job.plan is None else batch_to_json(job.plan)
        if plan is not None and plan != row.batch:
            self._plan(row.id, plan)
        row.batch = plan
        self._changed[row.id] = None

    def holds(self, job_id: JobId, allocation: Allocation | None, cluster: Cluster, *, at: float, round_number: int) -> None:
        """The GPUs that a job holds from `at` on: where they are others than before, one stretch of its timeline ends and one begins."""
        row = self.rows.get(job_id)
        gpus = None if allocation is None else list(allocation.gpus)
        if row is None or gpus == row.gpus:
            return
        self._release(row, at)
        if allocation is None:
            return
        row.gpu_type, row.gpus = allocation.gpu_type, gpus
        self._opened.append(
            {
                "job_id": row.id,
                "cluster_id": self._cluster_id,
                "round_number": round_number,
                "from_seconds": at,
                "gpu_type": allocation.gpu_type,
                "gpu_count": allocation.gpu_count,
                "node_count": len(set(cluster.gpu_node[list(allocation.gpus)].tolist())),
                "gpus": gpus,
                **_NO_BATCH,
            }
        )

    def renumbered(self, job_id: JobId, allocation: Allocation | None) -> None:
        """The same GPUs under new numbers: nodes were added or removed before them."""
        row = self.rows.get(job_id)
        if row is not None and allocation is not None and row.gpus is not None:
            row.gpus = list(allocation.gpus)
            self._changed[row.id] = None

    def explained(self, reasons: Mapping[JobId, Reasons], *, round_number: int) -> None:
        """Why every job has what it has; jobs that the round did not see are being profiled."""
        profiling = Reasons(ReasonCode.PROFILE_INCOMPLETE)
        for job_id, row in self.rows.items():
            why = reasons.get(job_id, profiling if row.state == JobState.PROFILING else None)
            if why is not None:
                row.reason_code, row.reason_evidence = why.primary.value, finite_values(why.evidence)
                row.as_of_round = round_number
                self._changed[job_id] = None

    def write(self, session: Session) -> None:
        """Write everything gathered, and begin anew."""
        connection = session.connection()
        spans: sa.Table = JobAllocation.__table__  # type: ignore[attr-defined]
        still_open = sa.and_(spans.c.job_id == sa.bindparam("of_job"), spans.c.to_seconds.is_(None))
        for statement, parameters in (
            (_update_jobs(), [self._values(job_id) for job_id in self._changed]),
            (sa.update(spans).where(still_open), self._planned),
            (sa.update(spans).where(still_open), self._closed),
            (sa.insert(spans), self._opened),
            (sa.insert(JobEvent), self._events),
        ):
            if parameters:
                connection.execute(statement, parameters)
        for gathered in (self._planned, self._closed, self._opened, self._events):
            gathered.clear()
        self._changed.clear()

    def _plan(self, job_id: JobId, plan: Mapping[str, Any]) -> None:
        """The batch of the stretch that lasts: one that began in this step is not stored yet, and an update would meet the one before it."""
        begun = next((span for span in reversed(self._opened) if span["job_id"] == job_id), None)
        if begun is not None:
            begun.update(plan)
        else:
            self._planned.append({"of_job": job_id, **plan})

    def _pass_to(self, row: JobRow, state: JobState, at: float) -> None:
        row.state = state.value
        if state is JobState.STARTING:
            row.started_seconds = at
        if state in TERMINAL:
            row.finished_seconds, row.goodput = at, None
            self._release(row, at)
        self._changed[row.id] = None

    def _release(self, row: JobRow, at: float) -> None:
        if row.gpus is not None:
            self._closed.append({"of_job": row.id, "to_seconds": at})
        row.gpu_type, row.gpus, row.batch = None, None, None
        self._changed[row.id] = None

    def _values(self, job_id: JobId) -> dict[str, Any]:
        row = self.rows[job_id]
        return {"of_job": job_id, **{name: getattr(row, name) for name in _WRITTEN}}


def _update_jobs() -> sa.Update:
    """By id; a job that somebody ended meanwhile stays ended."""
    jobs: sa.Table = JobRow.__table__  # type: ignore[attr-defined]
    mine = sa.and_(jobs.c.id == sa.bindparam("of_job"), jobs.c.finished_seconds.is_(None))
    return sa.update(jobs).where(mine).values(version=jobs.c.version + 1, **{name: sa.bindparam(name) for name in _WRITTEN})
