"""Counts of jobs that a report tells: finished in the period, and waiting at its end."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col

from backend.accounts.identity import Principal
from backend.accounts.models import Tenant
from backend.clusters.models import Cluster
from backend.fairness.ended_reading import succeeded_in
from backend.jobs.models import Job, JobPause
from backend.periods import Period
from backend.reports.facts import OTHERS


def finished_in(session: Session, seen: Principal, cluster: Cluster, period: Period) -> int:
    """Count jobs that succeeded in a period: the tenant's, or all."""
    found = succeeded_in(session, cluster, period)
    return found.total() if seen.sees_all_tenants else found[seen.tenant_id]


def waiting_at(session: Session, seen: Principal, cluster_id: str, at: float) -> dict[str, int]:
    """Count jobs that had been submitted and never run at a cluster second, by tenant.

    Those that were paused then did not wait.
    """
    not_begun = col(Job.started_seconds).is_(None) | (col(Job.started_seconds) >= at)
    not_over = col(Job.finished_seconds).is_(None) | (col(Job.finished_seconds) >= at)
    paused = sa.exists().where(
        col(JobPause.job_id) == col(Job.id),
        col(JobPause.from_seconds) <= at,
        col(JobPause.to_seconds).is_(None) | (col(JobPause.to_seconds) > at),
    )
    name: Any = col(Tenant.name)
    if not seen.sees_all_tenants:
        name = sa.case((col(Tenant.id) == seen.tenant_id, col(Tenant.name)), else_=OTHERS)
    whose = name.label("whose")
    rows = session.connection().execute(
        sa.select(whose, sa.func.count())
        .select_from(Job)
        .join(Tenant, col(Tenant.id) == col(Job.tenant_id))
        .where(
            col(Job.cluster_id) == cluster_id,
            col(Job.submitted_seconds) < at,
            not_begun,
            not_over,
            ~paused,
        )
        .group_by(whose)
    )
    return {name: count for name, count in rows}  # noqa: C416  (rows are no pairs to the types)
