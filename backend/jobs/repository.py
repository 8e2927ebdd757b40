"""Reads job rows and those that belong to them: one predicate for rows, totals and state counts. Commits nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col, func, select

from backend.accounts.identity import Principal
from backend.accounts.models import Tenant, User
from backend.clocktime import seconds_at
from backend.clusters.models import Cluster
from backend.jobs.models import Job, JobAllocation, JobEvent
from backend.pagination import Order, Rows, paginate
from backend.problems import NotFound

SORT_KEYS: Mapping[str, Any] = {
    "submitted_at": Job.submitted_seconds,
    "name": Job.name,
    "model": Job.model,
    "state": Job.state,
    "progress": Job.progress,
    "gpu_hours": Job.gpu_seconds,
    "restarts": Job.restarts,
}


@dataclass(frozen=True)
class JobFilters:
    """Which jobs. An empty collection or None filters nothing."""

    cluster: str | None = None
    states: tuple[str, ...] = ()
    tenants: tuple[str, ...] = ()
    owner: str | None = None
    models: tuple[str, ...] = ()
    gpu_types: tuple[str, ...] = ()
    text: str | None = None
    submitted_after: datetime | None = None


def get_job(session: Session, principal: Principal, job_id: str, *, lock: bool = False) -> Job:
    """Raises NotFound for another tenant's job too: that it exists is nobody else's business."""
    statement = select(Job).where(Job.id == job_id)
    job = session.exec(statement.with_for_update() if lock else statement).first()
    if job is None or not principal.may_see(job.tenant_id):
        raise NotFound(f"There is no job {job_id!r}.")
    return job


def find_jobs(
    session: Session, predicate: sa.ColumnElement[bool], *, order: Order, filters: Mapping[str, Any], limit: int, cursor: str | None
) -> Rows[Job]:
    return paginate(session, select(Job).where(predicate), order=order, filters=filters, limit=limit, cursor=cursor)


def count_by_state(session: Session, predicate: sa.ColumnElement[bool]) -> dict[str, int]:
    statement = select(Job.state, func.count()).where(predicate).group_by(col(Job.state)).order_by(col(Job.state))
    return dict(session.exec(statement).all())


def job_predicate(filters: JobFilters, principal: Principal, clusters: Sequence[Cluster]) -> sa.ColumnElement[bool]:
    """The one predicate of a job list, what the principal may see included. `clusters`: those that the list may be about."""
    return sa.and_(sa.true(), *_conditions(filters, principal, clusters))


def _conditions(filters: JobFilters, principal: Principal, clusters: Sequence[Cluster]) -> Iterable[sa.ColumnElement[bool]]:
    if not principal.sees_all_tenants:
        yield col(Job.tenant_id) == principal.tenant_id
    if filters.cluster is not None:
        yield col(Job.cluster_id).in_([cluster.id for cluster in clusters])
    for column, wanted in ((Job.state, filters.states), (Job.model, filters.models), (Job.gpu_type, filters.gpu_types)):
        if wanted:
            yield col(column).in_(wanted)
    if filters.tenants:
        tenants = sa.select(col(Tenant.id)).where(col(Tenant.name).in_(filters.tenants) | col(Tenant.id).in_(filters.tenants))
        yield col(Job.tenant_id).in_(tenants)
    if filters.owner is not None:
        yield col(Job.owner_id).in_(sa.select(col(User.id)).where((col(User.name) == filters.owner) | (col(User.id) == filters.owner)))
    if filters.text:
        named = (col(c).icontains(filters.text, autoescape=True) for c in (Job.name, Job.external_id))
        yield sa.or_(*named, col(Job.id) == filters.text)
    if filters.submitted_after is not None:
        yield sa.or_(sa.false(), *(_submitted_after(cluster, filters.submitted_after) for cluster in clusters))


def _submitted_after(cluster: Cluster, moment: datetime) -> sa.ColumnElement[bool]:
    return sa.and_(col(Job.cluster_id) == cluster.id, col(Job.submitted_seconds) > seconds_at(cluster, moment))


def job_order(sort: str, clusters: Sequence[Cluster]) -> Order:
    """`sort`: a name of SORT_KEYS, with `-` in front for descending. Dates of several clusters compare by what they are shown as."""
    name = sort.removeprefix("-")
    key = SORT_KEYS[name]
    if name == "submitted_at" and len(clusters) > 1:
        epochs = {cluster.id: cluster.epoch.timestamp() for cluster in clusters}
        key = key + sa.case(epochs, value=col(Job.cluster_id), else_=0.0)
    return Order([key, col(Job.id)], descending=sort.startswith("-"))


def held_gpus(session: Session, cluster_id: str) -> list[int]:
    """Numbers of all GPUs of the cluster that jobs hold."""
    held = session.exec(select(Job.gpus).where(Job.cluster_id == cluster_id, col(Job.gpus).is_not(None)))
    return [gpu for gpus in held for gpu in gpus or ()]


def holders(session: Session, cluster_id: str) -> Sequence[tuple[str, str, str, list[int]]]:
    """(id, name, tenant, GPU numbers) of the jobs that hold GPUs."""
    statement = (
        select(Job.id, Job.name, Tenant.name, Job.gpus)
        .join(Tenant, col(Tenant.id) == col(Job.tenant_id))
        .where(Job.cluster_id == cluster_id, col(Job.gpus).is_not(None))
    )
    return [(job_id, name, tenant, list(gpus or ())) for job_id, name, tenant, gpus in session.exec(statement)]


def taken_external_ids(session: Session, tenant_id: str, wanted: Iterable[str]) -> dict[str, str]:
    """Ids of the tenant's jobs that have one of these external ids."""
    statement = select(Job.external_id, Job.id).where(Job.tenant_id == tenant_id, col(Job.external_id).in_(list(wanted)))
    return {external: job_id for external, job_id in session.exec(statement) if external is not None}


def allocations_of(session: Session, job_id: str, *, limit: int, cursor: str | None) -> Rows[JobAllocation]:
    statement = select(JobAllocation).where(JobAllocation.job_id == job_id)
    filters = {"list": "allocations", "job": job_id}
    return paginate(session, statement, order=Order([col(JobAllocation.id)]), filters=filters, limit=limit, cursor=cursor)


def events_of(session: Session, job_id: str, *, limit: int, cursor: str | None) -> Rows[JobEvent]:
    statement = select(JobEvent).where(JobEvent.job_id == job_id)
    filters = {"list": "events", "job": job_id}
    return paginate(session, statement, order=Order([col(JobEvent.id)]), filters=filters, limit=limit, cursor=cursor)
