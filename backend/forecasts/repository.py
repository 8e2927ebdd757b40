"""Reads forecasts of jobs. Commits nothing."""

from __future__ import annotations

from collections.abc import Sequence

from sqlmodel import Session, col, select

from backend.forecasts.models import JobForecastRow


def forecasts_of(session: Session, job_ids: Sequence[str]) -> dict[str, JobForecastRow]:
    """Return the latest forecasts of these jobs, by id: of those that have one."""
    if not job_ids:
        return {}
    wanted = select(JobForecastRow).where(col(JobForecastRow.job_id).in_(job_ids))
    return {row.job_id: row for row in session.exec(wanted)}
