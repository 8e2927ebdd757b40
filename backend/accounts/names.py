"""Names of the users and tenants that rows belong to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import sqlalchemy as sa
from sqlmodel import Session, col

from backend.accounts.models import Tenant, User
from backend.accounts.principals import Principal

# Built once: building a statement takes longer than sending it.
_NAMED: Mapping[type[User] | type[Tenant], sa.Select[str, str]] = {
    table: sa.select(col(table.id), col(table.name)).where(
        col(table.id).in_(sa.bindparam("ids", expanding=True))
    )
    for table in (User, Tenant)
}


class Belongs(Protocol):
    owner_id: str
    tenant_id: str


def names_of(
    session: Session, rows: Sequence[Belongs], *, asking: Principal | None = None
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the names of the owners and of the tenants of these rows, by id.

    `asking`: whose own names are known, and are not looked up.
    """
    owners, tenants = {row.owner_id for row in rows}, {row.tenant_id for row in rows}
    known = ({}, {}) if asking is None else _own(asking)
    return (
        {**_found(session, User, owners - known[0].keys()), **known[0]},
        {**_found(session, Tenant, tenants - known[1].keys()), **known[1]},
    )


def _own(principal: Principal) -> tuple[dict[str, str], dict[str, str]]:
    return {principal.user_id: principal.user_name}, {principal.tenant_id: principal.tenant_name}


def _found(session: Session, table: type[User] | type[Tenant], wanted: set[str]) -> dict[str, str]:
    if not wanted:
        return {}
    return dict(session.connection().execute(_NAMED[table], {"ids": list(wanted)}).all())
