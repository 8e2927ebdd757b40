"""What is believed of the noise of jobs' gradients: the median of their latest reports.

Commits nothing; the worker calls it too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import aliased
from sqlmodel import Session, col, select

from backend.attempts.models import GradientSample
from backend.jobs.models import Job
from maat.scheduling.belief import GradientStatistics
from maat.scheduling.evidence import usual_gradient

MOST_REPORTS = 5
"""The latest of a job by which its noise is believed."""


def latest_gradients(session: Session, jobs: Any) -> Mapping[str, Sequence[GradientSample]]:
    """Return the latest gradients of the jobs that a condition on Job names, the newest first."""
    other = aliased(GradientSample)
    newest = (
        sa.select(col(other.id))
        .where(col(other.job_id) == col(Job.id))
        .order_by(col(other.id).desc())
        .limit(MOST_REPORTS)
        .correlate(Job)
    )
    rows = session.exec(
        select(GradientSample)
        .join(Job, col(Job.id) == col(GradientSample.job_id))
        .where(jobs, col(GradientSample.id).in_(newest))
        .order_by(col(GradientSample.job_id), col(GradientSample.id).desc())
    )
    return {job_id: list(of_job) for job_id, of_job in groupby(rows, lambda row: row.job_id)}


def believed_gradient(rows: Sequence[GradientSample], now: float) -> GradientStatistics | None:
    """Return what is believed at a moment of cluster time; None of no rows."""
    return usual_gradient(
        [(GradientStatistics(row.square, row.variance), now - row.at_seconds) for row in rows]
    )
