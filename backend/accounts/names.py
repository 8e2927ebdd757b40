"""Names of the users and tenants that rows belong to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sqlmodel import Session, col, select

from backend.accounts.models import Tenant, User


class Belongs(Protocol):
    owner_id: str
    tenant_id: str


def names_of(session: Session, rows: Sequence[Belongs]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the names of the owners and of the tenants of these rows, by id."""
    owners = session.exec(
        select(User.id, User.name).where(col(User.id).in_({row.owner_id for row in rows}))
    )
    tenants = session.exec(
        select(Tenant.id, Tenant.name).where(col(Tenant.id).in_({row.tenant_id for row in rows}))
    )
    return dict(owners.all()), dict(tenants.all())
