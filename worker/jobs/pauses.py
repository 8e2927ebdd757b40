"""Which jobs rounds leave out, and the spans for which they were paused.

A pause is a row's wish (`jobs.pause_requested`). It becomes the job's state once the job holds no
GPU.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlmodel import Session, col, select

from backend.jobs.dependencies import NEVER_SUCCEEDS
from backend.models import Job as JobRow
from backend.models import JobDependency, JobPause
from maat.scheduling.explain import ReasonCode
from maat.scheduling.job import JobId
from maat.vocabulary import JobState
from worker.executors.protocol import Observation, Pause
from worker.jobs.standing import JobStanding
from worker.jobs.states import WITH_GPUS
from worker.writes import Write

_PAUSES: sa.Table = JobPause.__table__  # type: ignore[attr-defined]
_JOBS: sa.Table = JobRow.__table__  # type: ignore[attr-defined]
_NEEDS: sa.Table = JobDependency.__table__  # type: ignore[attr-defined]
_BY_USER = Pause(ReasonCode.HELD_BY_USER)
_MAY_PAUSE = WITH_GPUS | {JobState.PENDING, JobState.PREEMPTED}


class Paused(NamedTuple):
    """The unfinished jobs of a cluster that are to hold no GPU, and why.

    `met`: what jobs waited for and has succeeded: (job, needed job).
    """

    jobs: Mapping[JobId, Pause]
    met: Sequence[tuple[JobId, JobId]]


def paused_jobs(session: Session, cluster_id: str) -> Paused:
    """Read them: people's wishes, which count first, and jobs that follow others."""
    waiting, met = _followers(session, cluster_id)
    asked = select(JobRow.id).where(
        JobRow.cluster_id == cluster_id,
        col(JobRow.finished_seconds).is_(None),
        col(JobRow.pause_requested),
    )
    return Paused({**waiting, **dict.fromkeys(session.exec(asked), _BY_USER)}, met)


def _followers(
    session: Session, cluster_id: str
) -> tuple[dict[JobId, Pause], list[tuple[JobId, JobId]]]:
    columns = (_NEEDS.c.job_id, _NEEDS.c.needed_id, _JOBS.c.state)
    rows = session.connection().execute(
        sa.select(*columns)
        .join(_JOBS, _JOBS.c.id == _NEEDS.c.needed_id)
        .where(_NEEDS.c.cluster_id == cluster_id, _NEEDS.c.is_open)
        .order_by(*columns[:2])
    )
    states: dict[JobId, dict[JobId, str]] = defaultdict(dict)
    for job_id, needed, state in rows:
        states[job_id][needed] = state
    met = [
        (job_id, needed)
        for job_id, needs in states.items()
        for needed, state in needs.items()
        if state == JobState.SUCCEEDED
    ]
    pauses = {job_id: _pause_of(needs) for job_id, needs in states.items()}
    return {job_id: pause for job_id, pause in pauses.items() if pause is not None}, met


def _pause_of(needs: Mapping[JobId, str]) -> Pause | None:
    failed = [needed for needed, state in needs.items() if state in NEVER_SUCCEEDS]
    if failed:
        evidence = {"job": failed[0], "state": needs[failed[0]]}
        return Pause(ReasonCode.DEPENDENCY_FAILED, evidence)
    left = [needed for needed, state in needs.items() if state != JobState.SUCCEEDED]
    if not left:
        return None
    return Pause(ReasonCode.WAITING_DEPENDENCY, {"job": left[0], "jobs": len(left)})


def close_needs(met: Sequence[tuple[JobId, JobId]]) -> Write:
    """Note that jobs need not wait for these any more."""
    mine = sa.and_(
        _NEEDS.c.job_id == sa.bindparam("of_job"), _NEEDS.c.needed_id == sa.bindparam("needed")
    )
    rows = [{"of_job": job_id, "needed": needed} for job_id, needed in met]
    return Write(sa.update(_NEEDS).where(mine).values(is_open=False), rows)


def close_all_needs() -> sa.Update:
    """Note that a job (`of_job`) has ended, and waits for nothing any more."""
    mine = sa.and_(_NEEDS.c.job_id == sa.bindparam("of_job"), _NEEDS.c.is_open)
    return sa.update(_NEEDS).where(mine).values(is_open=False)


def without_paused(seen: Observation, paused: Mapping[JobId, Pause]) -> Observation:
    """Return the observation without the paused jobs: the only place where rounds lose them.

    A job that an executor has not taken off its GPUs yet stays: nobody else may get them.
    """
    if not paused:
        return seen
    free = {one.job_id for one in seen.statuses if one.allocation is None}
    jobs = tuple(job for job in seen.state.jobs if job.id not in paused or job.id not in free)
    return seen._replace(state=replace(seen.state, jobs=jobs))


def state_without_gpus(state: JobState, *, is_paused: bool) -> JobState | None:
    """Return the state that a job without GPUs passes to; None if it stays as it is.

    One that is not measured yet is paused after that.
    """
    if is_paused:
        return JobState.PAUSED if state in _MAY_PAUSE else None
    if state in WITH_GPUS:
        return JobState.PREEMPTED
    return JobState.PENDING if state is JobState.PAUSED else None


class PauseSpans:
    """Collects the spans of one step in which jobs are paused."""

    def __init__(self, cluster_id: str) -> None:
        self._cluster_id = cluster_id
        self._begun: list[dict[str, Any]] = []
        self._ended: list[dict[str, Any]] = []

    def note(self, job_id: JobId, job: JobStanding, state: JobState, at: float) -> None:
        """Note since when a job is paused that passes to this state, or that it is no more.

        Keep also for how long it was paused before it ever ran.
        """
        if state is JobState.PAUSED:
            job.paused_since_seconds = at
            self.begin(job_id, at)
        elif job.paused_since_seconds is not None:
            if job.started_seconds is None:
                job.unwaited_seconds += max(at - job.paused_since_seconds, 0.0)
            job.paused_since_seconds = None
            self.end(job_id, at)

    def begin(self, job_id: JobId, at: float) -> None:
        self._begun.append(
            {
                "job_id": job_id,
                "cluster_id": self._cluster_id,
                "from_seconds": at,
                "to_seconds": None,
            }
        )

    def end(self, job_id: JobId, at: float) -> None:
        """End the job's open span, which is stored or began in this step."""
        for span in self._begun:
            if span["job_id"] == job_id and span["to_seconds"] is None:
                span["to_seconds"] = at
                return
        self._ended.append({"of_job": job_id, "ended_at": at})

    def take_writes(self) -> list[Write]:
        """Return what was collected, and forget it here."""
        open_one = sa.and_(
            _PAUSES.c.job_id == sa.bindparam("of_job"), _PAUSES.c.to_seconds.is_(None)
        )
        end = sa.update(_PAUSES).where(open_one)
        writes = [
            Write(end.values(to_seconds=sa.bindparam("ended_at", type_=sa.Float)), self._ended),
            Write(sa.insert(_PAUSES), self._begun),
        ]
        self._begun, self._ended = [], []
        return writes
