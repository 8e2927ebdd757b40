"""What is written down when a quota changes: a change of the tenant that has it."""

from __future__ import annotations

from sqlmodel import Session

from backend.accounts.principals import Principal
from backend.audit.changes import Change, Shown, actor_of, record
from backend.quotas.models import GpuQuota


def shown_quota(quota: GpuQuota) -> Shown:
    return {
        "cluster_id": quota.cluster_id,
        "gpu_type": quota.gpu_type,
        "guaranteed": quota.guaranteed,
        "ceiling": quota.ceiling,
    }


def record_quota(
    session: Session,
    principal: Principal,
    action: str,
    quota: GpuQuota,
    before: Shown,
    after: Shown,
) -> None:
    """Write a change down in its own transaction."""
    tenant_id = quota.tenant_id
    record(session, Change(actor_of(principal), action, tenant_id, before, after, tenant_id))
