"""Who may do what a remedy says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from backend.accounts.identity import Principal
from backend.accounts.permissions import Permission
from backend.jobs.models import Job
from maat.api.job_answers import Remedy
from maat.vocabulary import HEAVY_WEIGHT, PRIORITIES, PriorityClass


def permitted(
    principal: Principal, job: Job, remedies: Sequence[Remedy], *, others: Sequence[Job] = ()
) -> list[Remedy]:
    """Return the remedies, each with whether the principal may do it.

    `others`: the jobs that remedies act on besides this one.
    """
    by_id = {other.id: other for other in others}
    return [Remedy({**one, "permitted": _may(principal, job, by_id, one)}) for one in remedies]


def _may(principal: Principal, job: Job, others: Mapping[str, Job], remedy: Remedy) -> bool:
    match remedy["action"]:
        case "wait":
            return True
        case "change-tenant":
            return Permission.TENANTS_MANAGE in principal.permissions
        case "restore-nodes":
            return Permission.CLUSTERS_WRITE in principal.permissions
    changed = [others[target] for target in remedy["targets"]] or [job]
    changes = remedy["changes"]
    goes_before_others = (
        changes.get("priority", 0) >= PRIORITIES[PriorityClass.URGENT]
        or changes.get("weight", 0.0) > HEAVY_WEIGHT
    )
    return (
        Permission.JOBS_CHANGE in principal.permissions
        and all(
            principal.may_change(owner_id=one.owner_id, tenant_id=one.tenant_id) for one in changed
        )
        and (not goes_before_others or Permission.JOBS_URGENT in principal.permissions)
    )
