"""Reads rho of ended jobs. Commits nothing."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa
from sqlmodel import Session, col, select

from backend.accounts.identity import Principal
from backend.accounts.models import Tenant
from backend.fairness.models import JobFairness
from backend.pagination import Order, Rows, paginate


def ended_between(cluster_id: str, begin: float, end: float) -> list[sa.ColumnElement[bool]]:
    """Select the jobs of a cluster that ended from `begin` up to but without `end`."""
    finished = col(JobFairness.finished_seconds)
    return [col(JobFairness.cluster_id) == cluster_id, finished >= begin, finished < end]


def rho_by_tenant(session: Session, *where: sa.ColumnElement[bool]) -> dict[str, list[float]]:
    """Return rho of all jobs that have one, by tenant id, ascending."""
    statement = (
        select(JobFairness.tenant_id, JobFairness.rho)
        .where(*where, col(JobFairness.rho).is_not(None))
        .order_by(col(JobFairness.rho))
    )
    found: dict[str, list[float]] = {}
    for tenant_id, rho in session.exec(statement):
        if rho is not None:
            found.setdefault(tenant_id, []).append(rho)
    return found


def worst_first(
    session: Session,
    principal: Principal,
    *where: sa.ColumnElement[bool],
    filters: Mapping[str, object],
    limit: int,
    cursor: str | None,
) -> Rows[JobFairness]:
    """List the jobs of the largest rho first, of those that the principal may see."""
    statement = select(JobFairness).where(*where, col(JobFairness.rho).is_not(None))
    if not principal.sees_all_tenants:
        statement = statement.where(JobFairness.tenant_id == principal.tenant_id)
    seen_for = "all" if principal.sees_all_tenants else principal.tenant_id
    return paginate(
        session,
        statement,
        order=Order([col(JobFairness.rho), col(JobFairness.job_id)], descending=True),
        filters={"list": "fairness", "for": seen_for, **filters},
        limit=limit,
        cursor=cursor,
    )


def tenant_names(session: Session, ids: list[str]) -> dict[str, str]:
    return dict(session.exec(select(Tenant.id, Tenant.name).where(col(Tenant.id).in_(ids))).all())
