"""Who may do what a remedy says."""

from __future__ import annotations

from collections.abc import Sequence

from backend.accounts.identity import Principal
from backend.accounts.permissions import Permission
from backend.jobs.models import Job
from maat.api.job_answers import Remedy
from maat.vocabulary import PRIORITIES, PriorityClass


def permitted(principal: Principal, job: Job, remedies: Sequence[Remedy]) -> list[Remedy]:
    """Return the remedies, each with whether the principal may do it."""
    return [Remedy({**one, "permitted": _may(principal, job, one)}) for one in remedies]


def _may(principal: Principal, job: Job, remedy: Remedy) -> bool:
    match remedy["action"]:
        case "wait":
            return True
        case "change-tenant":
            return Permission.TENANTS_MANAGE in principal.permissions
    urgent = remedy["changes"].get("priority", 0) >= PRIORITIES[PriorityClass.URGENT]
    return (
        Permission.JOBS_CHANGE in principal.permissions
        and principal.may_change(owner_id=job.owner_id, tenant_id=job.tenant_id)
        and (not urgent or Permission.JOBS_URGENT in principal.permissions)
    )
