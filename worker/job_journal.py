"""What a step of a cluster changes about its jobs.

Changes are collected in memory and prepared for the round's transaction. No other code changes
these columns while the lease is held. States change only as maat.scheduling.events allows; any
other change is logged and not written.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from backend.columns import json_text
from backend.models import Job as JobRow
from backend.models import JobAllocation, JobEvent
from maat.scheduling.cluster import Cluster
from maat.scheduling.events import TERMINAL, Event, EventKind, may_follow
from maat.scheduling.explain import ReasonCode, Reasons
from maat.scheduling.job import Allocation, JobId
from maat.simulation.simulated_job import SimulatedJob
from maat.vocabulary import JobState
from worker.changes_json import batch_to_json
from worker.round_rows import finite_values
from worker.writes import Write

log = logging.getLogger(__name__)

_JSON = ("gpus", "batch", "reason_evidence")
_SPANS: sa.Table = JobAllocation.__table__  # type: ignore[attr-defined]
_JOBS: sa.Table = JobRow.__table__  # type: ignore[attr-defined]
_NO_BATCH = {"total_batch_size": None, "per_gpu_batch_size": None, "accumulation_steps": None}


@dataclass
class JobStanding:
    """The columns of a job that its rounds write."""

    state: str
    started_seconds: float | None
    finished_seconds: float | None
    progress: float
    remaining_work: float
    gpu_seconds: float
    restarts: int
    goodput: float | None
    gpu_type: str | None
    gpus: list[int] | None
    batch: dict[str, Any] | None
    reason_code: str
    reason_evidence: dict[str, Any]
    as_of_round: int | None

    @classmethod
    def of(cls, row: JobRow) -> JobStanding:
        # The values as read: accessing each attribute costs many times as much.
        loaded = vars(row)
        return cls(**{name: loaded[name] for name in _WRITTEN})


_WRITTEN = tuple(JobStanding.__dataclass_fields__)


class JobJournal:
    """The unfinished jobs of one cluster.

    After a step that is not committed, this journal must not be used again.
    """

    def __init__(self, rows: Iterable[JobRow], *, cluster_id: str) -> None:
        self.jobs: dict[JobId, JobStanding] = {}
        self._cluster_id = cluster_id
        self._stored: dict[JobId, dict[str, Any]] = {}
        self._events: list[dict[str, Any]] = []
        self._closed: list[dict[str, Any]] = []
        self._opened: list[dict[str, Any]] = []
        self._planned: list[dict[str, Any]] = []
        self.admit(rows)

    def admit(self, rows: Iterable[JobRow]) -> None:
        """Add jobs as the database holds them."""
        for row in rows:
            job = self.jobs[row.id] = JobStanding.of(row)
            self._stored[row.id] = _compared(job)

    def record_event(self, event: Event, *, round_number: int | None) -> None:
        """Record an event of the executor; the job changes to its state, if allowed."""
        job = self.jobs.get(event.job_id)
        if job is None:
            return
        before, kind, after = JobState(job.state), event.kind, event.state
        if after is before:
            kind, after = EventKind.ALLOCATED, None
        if after is not None:
            if not may_follow(before, after):
                log.error(
                    "job %s is %s and cannot become %s: event ignored",
                    event.job_id,
                    before.value,
                    after.value,
                )
                return
            self._pass_to(event.job_id, job, after, event.time)
        self._events.append(
            {
                "job_id": event.job_id,
                "cluster_id": self._cluster_id,
                "round_number": round_number,
                "cluster_seconds": event.time,
                "kind": kind.value,
                "state": None if after is None else after.value,
                "data": json_text(dict(event.data)),
            }
        )

    def record_state(self, seen: SimulatedJob) -> None:
        """Record the present state of a job."""
        job = self.jobs.get(seen.spec.id)
        if job is None:
            return
        ledger, total = seen.ledger, seen.total_work
        job.progress = min(ledger.done_work / total, 1.0) if total > 0 else 1.0
        job.remaining_work = max(total - ledger.done_work, 0.0)
        job.gpu_seconds = sum(ledger.gpu_seconds.values())
        job.restarts = ledger.restarts
        job.started_seconds = ledger.started_at
        running = seen.finished_at is None and seen.allocation is not None
        job.goodput = seen.goodput if running and seen.goodput > 0 else None
        plan = None if seen.plan is None else batch_to_json(seen.plan)
        if plan is not None and plan != job.batch:
            self._plan(seen.spec.id, plan)
        job.batch = plan

    def record_allocation(
        self,
        job_id: JobId,
        allocation: Allocation | None,
        cluster: Cluster,
        *,
        at: float,
        round_number: int,
    ) -> None:
        """Record the GPUs that a job holds from `at` on.

        If they differ from before, one span of its timeline ends and one begins.
        """
        job = self.jobs.get(job_id)
        gpus = None if allocation is None else list(allocation.gpus)
        if job is None or gpus == job.gpus:
            return
        self._release(job_id, job, at)
        if allocation is None:
            return
        job.gpu_type, job.gpus = allocation.gpu_type, gpus
        self._opened.append(
            {
                "job_id": job_id,
                "cluster_id": self._cluster_id,
                "round_number": round_number,
                "from_seconds": at,
                "gpu_type": allocation.gpu_type,
                "gpu_count": allocation.gpu_count,
                "node_count": len(set(cluster.gpu_node[list(allocation.gpus)].tolist())),
                "gpus": json_text(gpus),
                **_NO_BATCH,
            }
        )

    def renumber(self, job_id: JobId, allocation: Allocation | None) -> None:
        """Record new numbers of the same GPUs after nodes were added or removed."""
        job = self.jobs.get(job_id)
        if job is not None and allocation is not None and job.gpus is not None:
            job.gpus = list(allocation.gpus)

    def record_reasons(self, reasons: Mapping[JobId, Reasons], *, round_number: int) -> None:
        """Record why every job has its allocation.

        Jobs unknown to the round are being profiled.
        """
        profiling = Reasons(ReasonCode.PROFILE_INCOMPLETE)
        for job_id, job in self.jobs.items():
            why = reasons.get(job_id, profiling if job.state == JobState.PROFILING else None)
            if why is not None:
                job.reason_code, job.reason_evidence = (
                    why.primary.value,
                    finite_values(why.evidence),
                )
                job.as_of_round = round_number

    def take_writes(
        self, *, of: Iterable[JobId] | None = None, explained_by: int | None = None
    ) -> list[Write]:
        """Return everything collected as writes, and forget it here with the ended jobs.

        `of`: the jobs that may differ from their rows. `explained_by`: the round that explained
        every job; it is also recorded for jobs that did not change otherwise.
        """
        still_open = sa.and_(
            _SPANS.c.job_id == sa.bindparam("of_job"), _SPANS.c.to_seconds.is_(None)
        )
        writes = [
            Write(_update_jobs(), self._changed(list(self.jobs) if of is None else of)),
            *([] if explained_by is None else [Write(self._note_round(explained_by))]),
            Write(sa.update(_SPANS).where(still_open), self._planned),
            Write(sa.update(_SPANS).where(still_open), self._closed),
            Write(sa.insert(_SPANS), self._opened),
            Write(sa.insert(JobEvent), self._events),
        ]
        self._planned, self._closed, self._opened, self._events = [], [], [], []
        for job_id in [job_id for job_id, job in self.jobs.items() if job.state in TERMINAL]:
            del self.jobs[job_id], self._stored[job_id]
        return writes

    def _changed(self, jobs: Iterable[JobId]) -> list[dict[str, Any]]:
        """Return the jobs that differ from their rows, and remember them as written."""
        rows = []
        for job_id, job in ((job_id, self.jobs[job_id]) for job_id in jobs if job_id in self.jobs):
            now = _compared(job)
            if now != self._stored[job_id]:
                self._stored[job_id] = now
                texts = {
                    name: None if now[name] is None else json_text(now[name]) for name in _JSON
                }
                rows.append({"of_job": job_id, "as_of": job.as_of_round, **now, **texts})
        return rows

    def _note_round(self, number: int) -> sa.Update:
        explained = (
            _JOBS.c.cluster_id == self._cluster_id,
            _JOBS.c.finished_seconds.is_(None),
            _JOBS.c.as_of_round < number,
        )
        return (
            sa.update(_JOBS)
            .where(*explained)
            .values(as_of_round=number, version=_JOBS.c.version + 1)
        )

    def _plan(self, job_id: JobId, plan: Mapping[str, Any]) -> None:
        """Record the batch of the present span.

        A span that began in this step is not stored yet: an update would change the one before it.
        """
        begun = next((span for span in reversed(self._opened) if span["job_id"] == job_id), None)
        if begun is not None:
            begun.update(plan)
        else:
            self._planned.append({"of_job": job_id, **plan})

    def _pass_to(self, job_id: JobId, job: JobStanding, state: JobState, at: float) -> None:
        job.state = state.value
        if state is JobState.STARTING:
            job.started_seconds = at
        if state in TERMINAL:
            job.finished_seconds, job.goodput = at, None
            self._release(job_id, job, at)

    def _release(self, job_id: JobId, job: JobStanding, at: float) -> None:
        if job.gpus is not None:
            self._closed.append({"of_job": job_id, "to_seconds": at})
        job.gpu_type, job.gpus, job.batch = None, None, None


def _compared(job: JobStanding) -> dict[str, Any]:
    """Return what is written of a job, except the round that explained it.

    That changes every time.
    """
    values = dict(vars(job))
    del values["as_of_round"]
    return values


def _update_jobs() -> sa.Update:
    """Update jobs by id; a job that was ended in the meantime stays ended."""
    mine = sa.and_(_JOBS.c.id == sa.bindparam("of_job"), _JOBS.c.finished_seconds.is_(None))
    written: dict[str, Any] = {
        name: sa.bindparam(name) for name in _WRITTEN if name != "as_of_round"
    }
    return (
        sa.update(_JOBS)
        .where(mine)
        .values(version=_JOBS.c.version + 1, as_of_round=sa.bindparam("as_of"), **written)
    )
