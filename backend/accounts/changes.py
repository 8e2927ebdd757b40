"""What changes of accounts share: one at a time, and what is written down of a row."""

from __future__ import annotations

import sqlalchemy as sa
from sqlmodel import Session

from backend.accounts.models import Tenant, User
from backend.audit.changes import Shown

_LOCK = 7_240_116


def one_at_a_time(session: Session) -> None:
    """Wait until no other transaction changes accounts.

    What a change must keep (an administrator stays) depends on many rows. On SQLite there is one
    writer anyway.
    """
    if session.get_bind().dialect.name != "sqlite":
        session.execute(sa.text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
    session.expire_all()


def shown_user(user: User) -> Shown:
    return {
        "name": user.name,
        "tenant_id": user.tenant_id,
        "role": user.role,
        "kind": user.kind,
        "active": user.active,
    }


def shown_tenant(tenant: Tenant) -> Shown:
    return {
        "name": tenant.name,
        "closed": tenant.closed_at is not None,
        "weight": tenant.weight,
    }
