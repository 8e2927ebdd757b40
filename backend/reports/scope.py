"""The scope of a report: one tenant or the whole cluster.

A tenant's report contains what a viewer of that tenant may see; the cluster's, what an auditor may
see. So two people who ask for the same report get the same document.
"""

from __future__ import annotations

from dataclasses import replace

from sqlmodel import Session

from backend.accounts.identity import Principal
from backend.accounts.permissions import PERMISSIONS, Role
from backend.accounts.tenants import find_tenant


def seen_by(session: Session, principal: Principal, tenant: str | None) -> Principal:
    """Return the principal by whose eyes a report is made.

    `tenant`: by name. Who does not see all tenants gets the report of their own. Raises NotFound,
    for a tenant that the principal may not see too.
    """
    found = None if tenant is None else find_tenant(session, principal, tenant)
    if not principal.sees_all_tenants:
        return _as(principal, Role.VIEWER, principal.tenant_id, principal.tenant_name)
    if found is None:
        return _as(principal, Role.AUDITOR, principal.tenant_id, principal.tenant_name)
    return _as(principal, Role.VIEWER, found.id, found.name)


def tenant_of(seen: Principal) -> str | None:
    """Return the id of the tenant whose report it is; None for one of the whole cluster."""
    return None if seen.sees_all_tenants else seen.tenant_id


def _as(principal: Principal, role: Role, tenant_id: str, tenant_name: str) -> Principal:
    return replace(
        principal,
        role=role,
        tenant_id=tenant_id,
        tenant_name=tenant_name,
        permissions=PERMISSIONS[role],
    )
