"""Counts of jobs that a report tells: finished in the period, and waiting at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import sqlalchemy as sa
from sqlmodel import Session, col

from backend.accounts.identity import Principal
from backend.fairness.ended_reading import EndedJobs
from backend.fairness.repository import tenant_names
from backend.jobs.models import Job, JobPause
from backend.reports.facts import OTHERS


def finished_in(ended: EndedJobs, seen: Principal) -> int:
    """Count jobs that succeeded in a period: the tenant's, or all."""
    found = ended.succeeded
    return found.total() if seen.sees_all_tenants else found[seen.tenant_id]


def waiting_at(session: Session, seen: Principal, cluster_id: str, at: float) -> Mapping[str, int]:
    """Count jobs that had been submitted and never run at a cluster second, by tenant.

    Those that were paused then did not wait.
    """
    not_begun = col(Job.started_seconds).is_(None) | (col(Job.started_seconds) >= at)
    paused = sa.exists().where(
        col(JobPause.job_id) == col(Job.id),
        col(JobPause.from_seconds) <= at,
        col(JobPause.to_seconds).is_(None) | (col(JobPause.to_seconds) > at),
    )
    ended = col(Job.finished_seconds)
    # The sum keeps the database from the index of submissions: all jobs of the past are in it.
    submitted = col(Job.submitted_seconds) + 0.0 < at
    waited = (col(Job.cluster_id) == cluster_id, submitted, not_begun)
    found: Counter[str] = Counter()
    for not_over in (ended.is_(None), ended >= at):  # apart: each has an index
        by_tenant = sa.select(col(Job.tenant_id), sa.func.count()).where(*waited, not_over, ~paused)
        rows = session.connection().execute(by_tenant.group_by(col(Job.tenant_id)))
        found.update({tenant_id: count for tenant_id, count in rows})  # noqa: C416
    names = tenant_names(session, [one for one in found if seen.may_see(one)])
    shown: Counter[str] = Counter()
    for tenant_id, count in found.items():
        shown[names.get(tenant_id, OTHERS)] += count
    return shown
