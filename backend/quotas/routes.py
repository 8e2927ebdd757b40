"""Routes of quotas. A tenant's people see their own tenant's; cluster admins and auditors all."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response
from sqlmodel import Session, col, select

from backend.accounts.identity import Principal, require
from backend.accounts.permissions import Permission
from backend.clusters.repository import get_cluster
from backend.pagination import Order, PageAsked, paginate
from backend.quotas import service
from backend.quotas.models import GpuQuota
from backend.quotas.showing import show_quotas, show_types, use_of
from backend.web.conditional import IfMatch, etag
from backend.web.dependencies import SessionDep
from backend.web.strict_json import StrictRoute
from maat.api.quotas import QuotaBody, QuotaOut, QuotaPage

router = APIRouter(
    prefix="/clusters/{cluster_id}/quotas", tags=["clusters"], route_class=StrictRoute
)
ONE = "/{tenant}/{gpu_type:path}"  # the name of a GPU type may hold a slash

Reader = Annotated[Principal, Depends(require(Permission.CLUSTERS_READ))]
Writer = Annotated[Principal, Depends(require(Permission.CLUSTERS_WRITE))]


@router.get("", operation_id="listQuotas")
def list_quotas(
    session: SessionDep, principal: Reader, cluster_id: str, asked: PageAsked
) -> QuotaPage:
    """By tenant, oldest first, and GPU type; each with what is in use of it now."""
    cluster = get_cluster(session, cluster_id)
    statement = select(GpuQuota).where(GpuQuota.cluster_id == cluster.id)
    if not principal.sees_all_tenants:
        statement = statement.where(GpuQuota.tenant_id == principal.tenant_id)
    seen = "all" if principal.sees_all_tenants else principal.tenant_id
    found = asked.linked(
        paginate(
            session,
            statement,
            order=Order([col(GpuQuota.tenant_id), col(GpuQuota.gpu_type)]),
            filters={"list": "quotas", "cluster": cluster.id, "for": seen},
            limit=asked.limit,
            cursor=asked.cursor,
        )
    )
    use = use_of(session, cluster)
    return QuotaPage(
        items=show_quotas(session, use, found.items),
        next_cursor=found.next_cursor,
        gpu_types=show_types(session, principal, cluster, use),
    )


@router.get(ONE, operation_id="getQuota")
def read_quota(
    session: SessionDep,
    principal: Reader,
    cluster_id: str,
    tenant: str,
    gpu_type: str,
    response: Response,
) -> QuotaOut:
    """Of a tenant, by id or by name, and a GPU type."""
    found = service.find_quota(session, principal, cluster_id, tenant, gpu_type)
    return _shown(session, found, response)


@router.put(ONE, operation_id="setQuota")
def set_quota(
    session: SessionDep,
    principal: Writer,
    cluster_id: str,
    tenant: str,
    gpu_type: str,
    body: QuotaBody,
    response: Response,
    if_match: IfMatch = None,
) -> QuotaOut:
    """Guarantee a tenant GPUs of a type, and bound what it may hold. The next round follows it.

    Changing one that is there needs If-Match. Repeating a request changes nothing.
    """
    row = service.set_quota(session, principal, cluster_id, tenant, gpu_type, body, if_match)
    return _shown(session, row, response)


@router.delete(ONE, operation_id="removeQuota", status_code=204)
def remove_quota(
    session: SessionDep,
    principal: Writer,
    cluster_id: str,
    tenant: str,
    gpu_type: str,
    if_match: IfMatch = None,
) -> None:
    """Remove a quota: nothing of the type is then guaranteed or bounded. Needs If-Match."""
    service.remove_quota(session, principal, cluster_id, tenant, gpu_type, if_match)


def _shown(session: Session, row: GpuQuota, response: Response) -> QuotaOut:
    response.headers["ETag"] = etag(row.version)
    (shown,) = show_quotas(session, use_of(session, get_cluster(session, row.cluster_id)), [row])
    return shown
