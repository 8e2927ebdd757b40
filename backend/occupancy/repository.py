"""Reads which jobs hold which GPUs. Commits nothing."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from sqlmodel import Session, col, select

from backend.accounts.models import Tenant
from backend.jobs.models import Job


def held_gpus(session: Session, cluster_id: str) -> list[int]:
    """Return the numbers of all GPUs of the cluster that jobs hold."""
    held = session.exec(select(Job.gpus).where(*_holding(cluster_id)))
    return [gpu for gpus in held for gpu in gpus or ()]


def holders(session: Session, cluster_id: str) -> Sequence[tuple[str, str, str, list[int]]]:
    """Return (id, name, tenant, GPU numbers) of the jobs that hold GPUs."""
    statement = (
        select(Job.id, Job.name, Tenant.name, Job.gpus)
        .join(Tenant, col(Tenant.id) == col(Job.tenant_id))
        .where(*_holding(cluster_id))
    )
    return [
        (job_id, name, tenant, list(gpus or ()))
        for job_id, name, tenant, gpus in session.exec(statement)
    ]


def _holding(cluster_id: str) -> tuple[sa.ColumnElement[bool], ...]:
    """Select active jobs with GPUs: ended jobs hold nothing, and an index has this condition."""
    return (
        col(Job.cluster_id) == cluster_id,
        col(Job.gpus).is_not(None),
        col(Job.finished_seconds).is_(None),
    )
