"""Who reported what is believed: tenants that the caller may know by name, others as a count."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from backend.accounts.identity import Principal
from maat.api.evidence import ReportersOut


def reporters(
    principal: Principal, tenants: Iterable[str], names: Mapping[str, str]
) -> ReportersOut:
    """Return who reported. `tenants`: their ids; `names`: of tenants by id."""
    ids = set(tenants)
    shown = {tenant for tenant in ids if may_name(principal, tenant)}
    named = sorted(names[tenant] for tenant in shown)
    return ReportersOut(tenants=named, other_tenants=len(ids - shown))


def may_name(principal: Principal, tenant: str) -> bool:
    """Return whether the caller may know a tenant, by its id."""
    return principal.sees_all_tenants or tenant == principal.tenant_id
