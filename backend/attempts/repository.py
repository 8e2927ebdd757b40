"""Reads attempts and samples. Commits nothing."""

from __future__ import annotations

from sqlmodel import Session, col, select

from backend.attempts.models import AttemptRow, StepSample
from backend.pagination import Order, Rows, paginate


def attempts_of(
    session: Session, job_id: str, *, limit: int, cursor: str | None
) -> Rows[AttemptRow]:
    return paginate(
        session,
        select(AttemptRow).where(AttemptRow.job_id == job_id),
        order=Order([col(AttemptRow.number)]),
        filters={"list": "attempts", "job": job_id},
        limit=limit,
        cursor=cursor,
    )


def samples_of(
    session: Session, job_id: str, *, limit: int, cursor: str | None
) -> Rows[StepSample]:
    return paginate(
        session,
        select(StepSample).where(StepSample.job_id == job_id),
        order=Order([col(StepSample.id)]),
        filters={"list": "samples", "job": job_id},
        limit=limit,
        cursor=cursor,
    )
