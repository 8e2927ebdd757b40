"""A job's place among the jobs that wait on its cluster: by priority, then by submission."""

from __future__ import annotations

import sqlalchemy as sa
from sqlmodel import Session, col, func, select

from backend.jobs.models import Job
from maat.api.job_answers import QueueOut
from maat.vocabulary import JobState

WAITING = (JobState.SUBMITTED, JobState.PENDING, JobState.PREEMPTED)


def place_of(session: Session, job: Job) -> QueueOut:
    """Count the jobs that wait on the job's cluster, and tell its place among them.

    One that is not stored stands behind all that are as urgent.
    """
    sooner = sa.and_(
        col(Job.priority) == job.priority,
        sa.tuple_(col(Job.submitted_seconds), col(Job.id))
        < sa.tuple_(sa.literal(job.submitted_seconds), sa.literal(job.id)),
    )
    ahead = func.count(sa.case((sa.or_(col(Job.priority) > job.priority, sooner), 1)))
    waits = (
        col(Job.cluster_id) == job.cluster_id,
        col(Job.finished_seconds).is_(None),
        col(Job.state).in_([state.value for state in WAITING]),
        col(Job.pause_requested).is_(False),
        col(Job.cancel_requested).is_(False),
    )
    waiting, before = session.exec(select(func.count(), ahead).where(*waits)).one()
    return QueueOut(waiting=int(waiting), position=int(before) + 1)


def place_if_waiting(session: Session, job: Job) -> QueueOut | None:
    """Return the place of a job that waits; None of any other."""
    stays = job.finished_seconds is None and not (job.pause_requested or job.cancel_requested)
    return place_of(session, job) if stays and job.state in WAITING else None
