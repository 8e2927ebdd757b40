"""Reads which jobs hold which GPUs, and how many each tenant holds. Commits nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import sqlalchemy as sa
from sqlmodel import Session, col, select

from backend.accounts.models import Tenant
from backend.jobs.models import Job, JobAllocation


class HoldingJob(NamedTuple):
    """A job that holds GPUs of one type."""

    job_id: str
    name: str
    preemptible: bool
    gpu_count: int


def held_gpus(session: Session, cluster_id: str) -> list[int]:
    """Return the numbers of all GPUs of the cluster that jobs hold."""
    held = session.exec(select(Job.gpus).where(*_holding(cluster_id)))
    return [gpu for gpus in held for gpu in gpus or ()]


Holding: TypeAlias = "tuple[str, str, str, list[int]]"
"""Id, name, tenant and GPU numbers of a job that holds GPUs."""


def holders(session: Session, cluster_id: str) -> list[Holding]:
    """Return the jobs that hold GPUs now."""
    statement = (
        select(Job.id, Job.name, Tenant.name, Job.gpus)
        .join(Tenant, col(Tenant.id) == col(Job.tenant_id))
        .where(*_holding(cluster_id))
    )
    return [
        (job_id, name, tenant, list(gpus or ()))
        for job_id, name, tenant, gpus in session.exec(statement)
    ]


def holders_at(
    session: Session, cluster_id: str, at_seconds: float, *, gpu_types: Sequence[str]
) -> list[Holding]:
    """Return the jobs that held GPUs at a cluster time.

    `gpu_types`: the type of every GPU that there is now. A GPU that a job held counts only if it is
    one of these, and has the type that it had.
    """
    span = col(JobAllocation.to_seconds)
    statement = (
        sa.select(
            col(Job.id),
            col(Job.name),
            col(Tenant.name),
            col(JobAllocation.gpus),
            col(JobAllocation.gpu_type),
        )
        .join(JobAllocation, col(JobAllocation.job_id) == col(Job.id))
        .join(Tenant, col(Tenant.id) == col(Job.tenant_id))
        .where(
            col(JobAllocation.cluster_id) == cluster_id,
            col(JobAllocation.from_seconds) <= at_seconds,
            sa.or_(span.is_(None), span > at_seconds),
        )
        .order_by(col(JobAllocation.id))
    )
    of_type = dict(enumerate(gpu_types))
    return [
        (job_id, name, tenant, [gpu for gpu in gpus if of_type.get(gpu) == gpu_type])
        for job_id, name, tenant, gpus, gpu_type in session.execute(statement)
    ]


class Span(NamedTuple):
    """A span of a job's timeline, in cluster seconds. `to_seconds`: None while it lasts."""

    job_id: str
    name: str
    from_seconds: float
    to_seconds: float | None
    gpu_type: str
    gpu_count: int


def spans_changed_since(session: Session, cluster_id: str, at_seconds: float) -> list[Span]:
    """Return the spans that began or ended after a cluster time, in the order they began."""
    began, ended = col(JobAllocation.from_seconds), col(JobAllocation.to_seconds)
    statement = (
        sa.select(
            col(Job.id),
            col(Job.name),
            began,
            ended,
            col(JobAllocation.gpu_type),
            col(JobAllocation.gpu_count),
        )
        .join(JobAllocation, col(JobAllocation.job_id) == col(Job.id))
        .where(
            col(JobAllocation.cluster_id) == cluster_id,
            sa.or_(began > at_seconds, ended > at_seconds),
        )
        .order_by(col(JobAllocation.id))
    )
    return [Span(*row) for row in session.execute(statement)]


def jobs_on(session: Session, cluster_id: str, gpus: Collection[int]) -> list[tuple[Job, str]]:
    """Return the jobs that hold one of these GPUs, each with its tenant's name, oldest first."""
    statement = (
        select(Job, Tenant.name)
        .join(Tenant, col(Tenant.id) == col(Job.tenant_id))
        .where(*_holding(cluster_id))
        .order_by(col(Job.id))
    )
    wanted = set(gpus)
    return [(job, name) for job, name in session.exec(statement) if wanted & set(job.gpus or ())]


def held_by_tenant(session: Session, cluster_id: str) -> Mapping[tuple[str, str], int]:
    """Count the GPUs that jobs hold, by tenant id and GPU type. Each job on a GPU counts."""
    held: Counter[tuple[str, str]] = Counter()
    statement = select(Job.tenant_id, Job.gpu_type, Job.gpus).where(*_holding(cluster_id))
    for tenant_id, gpu_type, gpus in session.exec(statement):
        held[tenant_id, str(gpu_type)] += len(gpus or ())
    return held


def jobs_of_tenant(
    session: Session, cluster_id: str, *, tenant_id: str, gpu_type: str
) -> list[HoldingJob]:
    """Return a tenant's jobs that hold GPUs of a type, those with most GPUs first."""
    statement = select(Job.id, Job.name, Job.preemptible, Job.gpus).where(
        *_holding(cluster_id), Job.tenant_id == tenant_id, Job.gpu_type == gpu_type
    )
    found = [
        HoldingJob(job_id, name, preemptible, len(gpus or ()))
        for job_id, name, preemptible, gpus in session.exec(statement)
    ]
    return sorted(found, key=lambda one: (-one.gpu_count, one.job_id))


def _holding(cluster_id: str) -> tuple[sa.ColumnElement[bool], ...]:
    """Select active jobs with GPUs: ended jobs hold nothing, and an index has this condition."""
    return (
        col(Job.cluster_id) == cluster_id,
        col(Job.gpus).is_not(None),
        col(Job.finished_seconds).is_(None),
    )
