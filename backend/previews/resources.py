"""Previews of rounds as the API answers them."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col

from backend.accounts.identity import Principal
from backend.accounts.models import Tenant
from backend.answers import answer_of
from backend.jobs.models import Job
from backend.operations.models import Operation
from backend.previews.models import RoundPreview
from backend.sight import OTHER_JOB, sight_of
from maat.api.previews import RoundPreviewOut

_FORGOTTEN = "a job that was deleted"


def show_preview(
    session: Session, principal: Principal, preview: RoundPreview, operation: Operation
) -> RoundPreviewOut:
    result = preview.result
    return answer_of(
        RoundPreviewOut,
        preview,
        state=operation.state,
        message=operation.message,
        error=operation.error,
        result=None if result is None else _named(session, principal, result),
    )


def _named(session: Session, principal: Principal, result: dict[str, Any]) -> dict[str, Any]:
    """Return the result with the names of the jobs that the principal may see."""
    ids = [job["job_id"] for job in result["jobs"]]
    sight = sight_of(session, principal, ids)
    columns = sa.select(col(Job.id), col(Job.name), col(Tenant.name)).join(
        Tenant, col(Tenant.id) == col(Job.tenant_id)
    )
    rows = session.execute(columns.where(col(Job.id).in_(ids)))
    known = {job_id: (name, tenant) for job_id, name, tenant in rows}
    jobs = []
    for job in result["jobs"]:
        name, tenant = known.get(job["job_id"], (_FORGOTTEN, None))
        seen = sight.may_see(job["job_id"])
        shown = {"job_id": sight.job(job["job_id"]), "job_name": name if seen else OTHER_JOB}
        jobs.append({**job, **shown, "tenant": tenant if seen else None})
    return {**_as_of_now(result), "jobs": jobs}


def _as_of_now(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result with what those of an earlier version lack."""
    sides = {name: {"notes": [], **result[name]} for name in ("as_it_stands", "with_change")}
    return {"jobs_not_considered": 0, **result, **sides}
