"""Reads forecasts of jobs. Commits nothing."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from sqlmodel import Session, col

from backend.forecasts.models import JobForecastRow

_OF_JOBS = sa.select(JobForecastRow).where(
    col(JobForecastRow.job_id).in_(sa.bindparam("job_ids", expanding=True))
)


def forecasts_of(session: Session, job_ids: Sequence[str]) -> dict[str, JobForecastRow]:
    """Return the latest forecasts of these jobs, by id: of those that have one."""
    if not job_ids:
        return {}
    found = session.scalars(_OF_JOBS, {"job_ids": list(job_ids)})
    return {row.job_id: row for row in found}


def starts_late(session: Session, job_id: str) -> bool:
    """Whether the latest forecast of a job has no start within its horizon."""
    row = session.get(JobForecastRow, job_id)
    return row is not None and not row.holds_gpus and row.start_p50 is None
