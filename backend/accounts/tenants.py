"""Makes, changes and removes tenants. Commits nothing."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from sqlalchemy.exc import IntegrityError
from sqlmodel import Session, col, func, select

from backend.accounts.administrators import an_administrator_stays
from backend.accounts.changes import one_at_a_time, shown_tenant
from backend.accounts.models import Tenant, User
from backend.accounts.name_rules import free_name
from backend.accounts.principals import Principal
from backend.accounts.sessions import end_sessions_of_tenant
from backend.answers import answer_of
from backend.audit.changes import Change, Shown, actor_of, record
from backend.clocktime import utc_now
from backend.fairness.weights import forget_weights, note_weight
from backend.laboratory.use import forget_use
from backend.problems import Conflict, NotFound
from backend.settings import Settings
from backend.web.conditional import check_version, check_version_if_sent
from maat.api.accounts import TenantBody, TenantChanges, TenantOut


def find_tenant(session: Session, principal: Principal, named: str) -> Tenant:
    """Find a tenant by id or name. Raises NotFound, also for one that may not be seen."""
    found = session.exec(
        select(Tenant).where((col(Tenant.id) == named) | (col(Tenant.name) == named))
    ).first()
    if found is None or not principal.may_see(found.id):
        raise NotFound(f"There is no tenant {named!r}.{_meant(session, principal, named)}")
    return found


def _meant(session: Session, principal: Principal, named: str) -> str:
    """Name the tenant of the nearest name, of those that the principal may see."""
    if not principal.sees_all_tenants:
        return ""
    near = get_close_matches(named, session.exec(select(Tenant.name)).all(), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def create_tenant(session: Session, principal: Principal, body: TenantBody) -> Tenant:
    one_at_a_time(session)
    tenant = Tenant(name=free_name(session, Tenant, body.name))
    session.add(tenant)
    session.flush()
    _record(session, principal, "create tenant", tenant, {}, shown_tenant(tenant))
    return tenant


def change_tenant(
    session: Session,
    settings: Settings,
    principal: Principal,
    named: str,
    changes: TenantChanges,
    if_match: str | None,
) -> Tenant:
    """Rename, close or open a tenant, or change its weight.

    Closing ends its sessions. Raises Conflict if no administrator would be left.
    """
    one_at_a_time(session)
    tenant = find_tenant(session, principal, named)
    check_version(if_match, tenant.version)
    before = shown_tenant(tenant)
    if changes.name is not None and changes.name != tenant.name:
        tenant.name = free_name(session, Tenant, changes.name, but=tenant.id)
    with an_administrator_stays(session, settings, f"To close {tenant.name}"):
        if changes.closed is not None and changes.closed != (tenant.closed_at is not None):
            tenant.closed_at = utc_now() if changes.closed else None
        if changes.weight is not None:
            note_weight(session, tenant.id, before=tenant.weight, after=changes.weight)
            tenant.weight = changes.weight
        tenant.version += 1
    if tenant.closed_at is not None:
        end_sessions_of_tenant(session, tenant.id)
    _record(session, principal, "change tenant", tenant, before, shown_tenant(tenant))
    return tenant


def remove_tenant(session: Session, principal: Principal, named: str, if_match: str | None) -> None:
    """Remove a tenant that has nothing. Raises Conflict for any other: it can be closed."""
    one_at_a_time(session)
    tenant = find_tenant(session, principal, named)
    check_version_if_sent(if_match, tenant.version)
    try:
        with session.begin_nested():
            forget_weights(session, tenant.id)
            forget_use(session, tenant.id)
            session.delete(tenant)
            session.flush()
    except IntegrityError:
        raise Conflict(
            f"The tenant {tenant.name} has users, jobs, simulations, webhooks or quotas, which "
            "would be lost: close it instead."
        ) from None
    _record(session, principal, "remove tenant", tenant, shown_tenant(tenant), {})


def show_tenants(session: Session, rows: Sequence[Tenant]) -> list[TenantOut]:
    counted = dict(
        session.exec(
            select(User.tenant_id, func.count())
            .where(col(User.tenant_id).in_([row.id for row in rows]))
            .group_by(col(User.tenant_id))
        ).all()
    )
    return [
        answer_of(
            TenantOut,
            row,
            state="open" if row.closed_at is None else "closed",
            users=counted.get(row.id, 0),
        )
        for row in rows
    ]


def _record(
    session: Session,
    principal: Principal,
    action: str,
    tenant: Tenant,
    before: Shown,
    after: Shown,
) -> None:
    record(session, Change(actor_of(principal), action, tenant.id, before, after, tenant.id))
