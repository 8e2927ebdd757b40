"""Sets and removes quotas. The next round follows a change. Commits nothing."""

from __future__ import annotations

from sqlmodel import Session

from backend.accounts.identity import Principal
from backend.accounts.tenants import find_tenant
from backend.clocktime import utc_now
from backend.clusters.repository import get_cluster
from backend.problems import NotFound, PreconditionFailed
from backend.quotas.changes import record_quota, shown_quota
from backend.quotas.checks import check_quota
from backend.quotas.models import GpuQuota
from backend.web.conditional import check_version
from maat.api.quotas import QuotaBody


def find_quota(
    session: Session, principal: Principal, cluster_id: str, tenant: str, gpu_type: str
) -> GpuQuota:
    """Find a quota of a tenant that the principal may see. Raises NotFound."""
    cluster = get_cluster(session, cluster_id)
    whose = find_tenant(session, principal, tenant)
    row = session.get(GpuQuota, (cluster.id, whose.id, gpu_type))
    if row is None:
        raise NotFound(f"{whose.name} has no quota of {gpu_type!r} here.")
    return row


def set_quota(
    session: Session,
    principal: Principal,
    cluster_id: str,
    tenant: str,
    gpu_type: str,
    body: QuotaBody,
    if_match: str | None,
) -> GpuQuota:
    """Make or change a quota; what is so already stays as it is.

    A change needs If-Match. Raises NotFound, Invalid naming the field, Conflict if running jobs
    would lose GPUs and that is not accepted.
    """
    cluster = get_cluster(session, cluster_id, lock=True)  # sums and versions hold until the end
    whose = find_tenant(session, principal, tenant)
    row = session.get(GpuQuota, (cluster.id, whose.id, gpu_type))
    before = {} if row is None else shown_quota(row)
    if row is None:
        if if_match is not None:
            raise PreconditionFailed(f"{whose.name} has no quota of {gpu_type!r} here any more.")
        row = GpuQuota(cluster_id=cluster.id, tenant_id=whose.id, gpu_type=gpu_type)
    elif (row.guaranteed, row.ceiling) == (body.guaranteed, body.ceiling):
        return row
    else:
        check_version(if_match, row.version)
        row.version += 1
    row.guaranteed, row.ceiling, row.changed_at = body.guaranteed, body.ceiling, utc_now()
    check_quota(session, row, accept_preemption=body.accept_preemption)
    session.add(row)
    session.flush()
    record_quota(session, principal, "set quota", row, before, shown_quota(row))
    return row


def remove_quota(
    session: Session,
    principal: Principal,
    cluster_id: str,
    tenant: str,
    gpu_type: str,
    if_match: str | None,
) -> None:
    """Remove a quota: nothing is guaranteed then, and nothing bounded. Needs If-Match."""
    get_cluster(session, cluster_id, lock=True)
    row = find_quota(session, principal, cluster_id, tenant, gpu_type)
    check_version(if_match, row.version)
    record_quota(session, principal, "remove quota", row, shown_quota(row), {})
    session.delete(row)
    session.flush()
