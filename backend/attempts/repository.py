"""Reads attempts, samples and gradients. Commits nothing."""

from __future__ import annotations

from sqlmodel import Session, col, select

from backend.attempts.models import AttemptRow, GradientSample, StepSample
from backend.pagination import Order, Rows, paginate
from backend.problems import NotFound
from maat.api.attempts import AttemptSort


def attempts_of(
    session: Session, job_id: str, *, sort: AttemptSort, limit: int, cursor: str | None
) -> Rows[AttemptRow]:
    return paginate(
        session,
        select(AttemptRow).where(AttemptRow.job_id == job_id),
        order=Order([col(AttemptRow.number)], descending=sort.startswith("-")),
        filters={"list": "attempts", "job": job_id, "sort": sort},
        limit=limit,
        cursor=cursor,
    )


def get_attempt(session: Session, job_id: str, number: int) -> AttemptRow:
    """Raises NotFound."""
    found = session.exec(
        select(AttemptRow).where(AttemptRow.job_id == job_id, AttemptRow.number == number)
    ).first()
    if found is None:
        raise NotFound(f"The job has no attempt {number}.")
    return found


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


def gradients_of(
    session: Session, job_id: str, *, limit: int, cursor: str | None
) -> Rows[GradientSample]:
    return paginate(
        session,
        select(GradientSample).where(GradientSample.job_id == job_id),
        order=Order([col(GradientSample.id)]),
        filters={"list": "gradients", "job": job_id},
        limit=limit,
        cursor=cursor,
    )
