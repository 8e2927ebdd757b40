"""When jobs that have ended were active, and with how many others: pauses count for neither."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlmodel import Session, col, select

from backend.models import Job, JobPause
from maat.scheduling.arrays import FloatArray
from maat.scheduling.contention import ActiveJobs

Away = Sequence[tuple[float, float]]
"""The pauses of a job, (from, to) in cluster seconds, within its life."""


def finished(job: Job) -> float:
    """The end of an ended job; none ends before it was submitted."""
    if job.finished_seconds is None:
        raise ValueError(f"job {job.id} has not ended")
    return max(job.finished_seconds, job.submitted_seconds)


def pauses_of(session: Session, jobs: Sequence[Job]) -> Mapping[str, Away]:
    """Return the pauses of these jobs, by id."""
    found: dict[str, list[tuple[float, float]]] = {job.id: [] for job in jobs}
    ends = {job.id: finished(job) for job in jobs}
    mine = select(JobPause).where(col(JobPause.job_id).in_(found)).order_by(col(JobPause.id))
    for one in session.exec(mine):
        until = (
            ends[one.job_id] if one.to_seconds is None else min(one.to_seconds, ends[one.job_id])
        )
        if until > one.from_seconds:
            found[one.job_id].append((one.from_seconds, until))
    return found


def contention_of(
    session: Session, cluster_id: str, jobs: Sequence[Job], away: Mapping[str, Away]
) -> list[float]:
    """The mean number of active jobs while each job was active, at least 1: of all tenants."""
    begins = np.array([job.submitted_seconds for job in jobs])
    ends = np.array([finished(job) for job in jobs])
    first, last = float(begins.min()), float(ends.max())
    lives = _spans(
        session, Job.submitted_seconds, Job.finished_seconds, Job, cluster_id, first, last
    )
    pauses = _spans(
        session, JobPause.from_seconds, JobPause.to_seconds, JobPause, cluster_id, first, last
    )
    present, paused = ActiveJobs(*lives), ActiveJobs(*pauses)

    def job_seconds(begin: FloatArray, end: FloatArray) -> FloatArray:
        mean: FloatArray = present.mean(begin, end) - paused.mean(begin, end)
        return mean * (end - begin)

    at_once = present.mean(begins, ends) - paused.mean(begins, ends)
    whole = job_seconds(begins, ends)
    found = []
    for number, job in enumerate(jobs):
        mine = np.array(away[job.id], dtype=float).reshape(-1, 2)
        seconds = float(ends[number] - begins[number] - (mine[:, 1] - mine[:, 0]).sum())
        met = float(whole[number] - job_seconds(mine[:, 0], mine[:, 1]).sum())
        found.append(max(met / seconds if seconds > 0 else float(at_once[number]), 1.0))
    return found


def _spans(
    session: Session, begin: Any, end: Any, table: Any, cluster_id: str, first: float, last: float
) -> tuple[FloatArray, FloatArray]:
    """Return when spans over a time began and ended, infinite if they last; each has an index."""
    ours = (table.cluster_id == cluster_id, begin < last)
    rows = [
        row
        for condition in (col(end) > first, col(end).is_(None))
        for row in session.execute(sa.select(begin, end).where(*ours, condition)).all()
    ]
    since = np.array([row[0] for row in rows], dtype=float)
    until = np.array([np.inf if row[1] is None else row[1] for row in rows], dtype=float)
    return since, until
