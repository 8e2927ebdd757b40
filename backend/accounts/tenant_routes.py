"""Routes of tenants. A tenant's manager sees their own; administrators make and close them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response
from sqlmodel import Session, col, select

from backend.accounts import tenants
from backend.accounts.identity import Principal, require
from backend.accounts.models import Tenant
from backend.accounts.permissions import Permission
from backend.idempotency import Answer, KeyHeader, Once, answer_once
from backend.pagination import Order, PageAsked, paginate
from backend.web.conditional import IfMatch, etag
from backend.web.dependencies import SessionDep, SettingsDep
from backend.web.strict_json import StrictRoute
from maat.api.accounts import TenantBody, TenantChanges, TenantOut
from maat.api.fields import Page

router = APIRouter(prefix="/tenants", tags=["accounts"], route_class=StrictRoute)

Reader = Annotated[Principal, Depends(require(Permission.TENANTS_READ))]
Manager = Annotated[Principal, Depends(require(Permission.TENANTS_MANAGE))]


@router.get("", operation_id="listTenants")
def list_tenants(session: SessionDep, principal: Reader, asked: PageAsked) -> Page[TenantOut]:
    """Oldest first."""
    statement = select(Tenant)
    if not principal.sees_all_tenants:
        statement = statement.where(Tenant.id == principal.tenant_id)
    found = asked.linked(
        paginate(
            session,
            statement,
            order=Order([col(Tenant.id)]),
            filters={"list": "tenants", "for": principal.tenant_id},
            limit=asked.limit,
            cursor=asked.cursor,
        )
    )
    return Page(items=tenants.show_tenants(session, found.items), next_cursor=found.next_cursor)


@router.post("", operation_id="createTenant", status_code=201, response_model=TenantOut)
def create_tenant(
    session: SessionDep,
    settings: SettingsDep,
    principal: Manager,
    body: TenantBody,
    key: KeyHeader = None,
) -> Response:
    def answer() -> Answer:
        tenant = tenants.create_tenant(session, principal, body)
        (shown,) = tenants.show_tenants(session, [tenant])
        headers = {"Location": f"/api/v1/tenants/{tenant.id}", "ETag": etag(tenant.version)}
        return Answer(201, shown, headers)

    once = Once(principal.user_id, "POST /tenants", key, body)
    return answer_once(session, once, settings, answer)


@router.get("/{tenant}", operation_id="getTenant")
def read_tenant(
    session: SessionDep, principal: Reader, tenant: str, response: Response
) -> TenantOut:
    """By id or by name."""
    return _shown(session, tenants.find_tenant(session, principal, tenant), response)


@router.patch("/{tenant}", operation_id="changeTenant")
def change_tenant(
    session: SessionDep,
    settings: SettingsDep,
    principal: Manager,
    tenant: str,
    body: TenantChanges,
    response: Response,
    if_match: IfMatch = None,
) -> TenantOut:
    """Rename, close or open a tenant, or change its weight. Needs If-Match.

    Nobody of a closed tenant is let in. Its running jobs go on.
    """
    changed = tenants.change_tenant(session, settings, principal, tenant, body, if_match)
    return _shown(session, changed, response)


@router.delete("/{tenant}", operation_id="removeTenant", status_code=204)
def remove_tenant(
    session: SessionDep, principal: Manager, tenant: str, if_match: IfMatch = None
) -> None:
    """Remove a tenant that has nothing; close all others."""
    tenants.remove_tenant(session, principal, tenant, if_match)


def _shown(session: Session, tenant: Tenant, response: Response) -> TenantOut:
    response.headers["ETag"] = etag(tenant.version)
    return tenants.show_tenants(session, [tenant])[0]
