"""Queues jobs that have ended for their rho."""

from __future__ import annotations

import sqlalchemy as sa

from backend.models import Job, JobFairness, OperationState

_JOBS: sa.Table = Job.__table__  # type: ignore[attr-defined]
_FAIRNESS: sa.Table = JobFairness.__table__  # type: ignore[attr-defined]
_COPIED = ("cluster_id", "tenant_id", "finished_seconds")
_QUEUED = {"state": OperationState.QUEUED.value, "cancel_requested": False}


def queue_ended() -> sa.Insert:
    """Queue the job `of_job` for its rho once it has ended, unless it is queued already."""
    new = (sa.literal(value).label(name) for name, value in _QUEUED.items())
    job = sa.select(_JOBS.c.id, *(_JOBS.c[name] for name in _COPIED), *new)
    known = sa.exists().where(_FAIRNESS.c.job_id == _JOBS.c.id)
    mine = sa.and_(_JOBS.c.id == sa.bindparam("of_job"), _JOBS.c.finished_seconds.is_not(None))
    return sa.insert(_FAIRNESS).from_select(["job_id", *_COPIED, *_QUEUED], job.where(mine, ~known))
