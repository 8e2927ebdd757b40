"""Principals: who asks, and what they may do. Finds them by user or by token; asks no request."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.exc import OperationalError
from sqlmodel import Session, SQLModel, col, update

from backend.accounts.models import ApiToken, Tenant, User
from backend.accounts.permissions import (
    ACTS_FOR_TENANT,
    PERMISSIONS,
    SEES_ALL_TENANTS,
    Permission,
    Role,
    lesser,
)
from backend.accounts.token_makers import makers_of
from backend.accounts.tokens import digest
from backend.clocktime import utc_now
from backend.database import Database, after_commit
from backend.problems import Forbidden, OutOfScope, Unauthenticated

LOCAL_USER = "local"
TOUCH_EVERY = timedelta(minutes=5)

_WHO: tuple[Any, ...] = (
    col(User.id).label("user_id"),
    col(User.name).label("user_name"),
    col(User.active),
    col(User.role),
    col(Tenant.id).label("tenant_id"),
    col(Tenant.name).label("tenant_name"),
    col(Tenant.closed_at),
)
_BY_TOKEN = (
    sa.select(ApiToken, *_WHO)
    .join(User, col(User.id) == col(ApiToken.user_id))
    .join(Tenant, col(Tenant.id) == col(User.tenant_id))
    .where(col(ApiToken.token_hash) == sa.bindparam("digest"))
)


@dataclass(frozen=True)
class Credential:
    """By what a principal was recognised: a token's or a session's id.

    `restricted`: it may less than its user. `expires_at`: what it makes may not last longer.
    """

    kind: Literal["token", "session", "local"] = "local"
    id: str | None = None
    restricted: bool = False
    expires_at: datetime | None = None


@dataclass(frozen=True)
class Principal:
    """A user who asks, and what they may do."""

    user_id: str
    user_name: str
    tenant_id: str
    tenant_name: str
    role: Role
    permissions: frozenset[Permission]
    credential: Credential = Credential()

    @property
    def sees_all_tenants(self) -> bool:
        return self.role in SEES_ALL_TENANTS

    @property
    def grantable(self) -> frozenset[Permission]:
        """What they may pass on: of their role, or of the restricted token that they hold."""
        return self.permissions if self.credential.restricted else PERMISSIONS[self.role]

    def may_see(self, tenant_id: str) -> bool:
        return self.sees_all_tenants or tenant_id == self.tenant_id

    def may_give(self, role: Role) -> bool:
        """Return whether this role is not above their own."""
        return PERMISSIONS[role] <= self.grantable and (
            self.sees_all_tenants or role not in SEES_ALL_TENANTS
        )

    def without(self, permission: Permission) -> Principal:
        return replace(self, permissions=self.permissions - {permission})

    def may_change(self, *, owner_id: str, tenant_id: str) -> bool:
        """Return whether this principal may change a row.

        Its owner may, a manager of its tenant may, and a cluster admin may.
        """
        return owner_id == self.user_id or (
            self.role in ACTS_FOR_TENANT and self.may_see(tenant_id)
        )


def check_permitted(principal: Principal, permission: Permission) -> None:
    """Raises Forbidden, OutOfScope."""
    if permission in principal.permissions:
        return
    who = f"{principal.user_name} ({principal.role})"
    if principal.credential.restricted and permission in PERMISSIONS[principal.role]:
        raise OutOfScope(f"{who} sent a token that does not have the scope {permission}.")
    raise Forbidden(f"{who} does not have the permission {permission}.")


def principal_named(session: Session, name: str) -> Principal:
    """Return the active user of this name. Raises Unauthenticated if there is none."""
    return principal_where(session, col(User.name) == name)


def principal_where(
    session: Session, predicate: Any, credential: Credential = Credential()
) -> Principal:
    """Return the active user of an open tenant. Raises Unauthenticated if there is none."""
    found = session.execute(
        sa.select(*_WHO).join(Tenant, col(Tenant.id) == col(User.tenant_id)).where(predicate)
    ).first()
    return _principal_of(found, credential)


def _principal_of(found: sa.Row[Any] | None, credential: Credential) -> Principal:
    """Return the user of a row that has the columns of _WHO."""
    if found is None or not found.active or found.closed_at is not None:
        raise Unauthenticated("The user does not exist or is not active.")
    role = Role(found.role)
    return Principal(
        found.user_id,
        found.user_name,
        found.tenant_id,
        found.tenant_name,
        role,
        PERMISSIONS[role],
        credential,
    )


def principal_by_token(session: Session, *, secret: str, database: Database) -> Principal:
    """Return the user of a token, restricted to its scopes. Raises Unauthenticated."""
    now = utc_now()
    found = session.execute(_BY_TOKEN, {"digest": digest(secret)}).first()
    token: ApiToken | None = None if found is None else found.ApiToken
    if (
        token is None
        or token.revoked_at is not None
        or (token.expires_at is not None and token.expires_at <= now)
    ):
        raise Unauthenticated("The token is unknown, revoked or expired.")
    credential = Credential("token", token.id, token.scopes is not None, token.expires_at)
    principal = _principal_of(found, credential)
    touch(session, token, "last_used_at", database)
    return _within_scopes(_within_makers(session, principal, token), token)


def _within_makers(session: Session, principal: Principal, token: ApiToken) -> Principal:
    """Hold a token to what those who made it may now. Raises Unauthenticated if one is gone."""
    makers = makers_of(session, token)
    if not makers:
        return principal
    role, permissions = principal.role, principal.permissions
    for maker in makers:
        if maker is None or not maker.may_see(principal.tenant_id):
            raise Unauthenticated("Who made the token may not use Maat, or not for this tenant.")
        role, permissions = lesser(role, maker.role), permissions & PERMISSIONS[maker.role]
    credential = replace(principal.credential, restricted=True)
    return replace(principal, role=role, permissions=permissions, credential=credential)


def _within_scopes(principal: Principal, token: ApiToken) -> Principal:
    if token.scopes is None:
        return principal
    held_to = principal.permissions & {Permission(scope) for scope in token.scopes}
    return replace(principal, permissions=frozenset(held_to))


def touch(session: Session, row: SQLModel, column: str, database: Database) -> None:
    """Record a use now and then, in its own transaction that never waits.

    Reading must not need the writer's lock.
    """
    now, last = utc_now(), getattr(row, column)
    if last is not None and timedelta(0) <= now - last < TOUCH_EVERY:
        return
    table: Any = type(row)
    row_id = table.id == getattr(row, "id")  # noqa: B009  (a table of any kind)

    def write() -> None:
        # If the database is busy, the next use is recorded instead.
        with suppress(OperationalError), database.session_scope(hasty=True) as own:
            own.execute(update(table).where(row_id).values({column: now}))

    after_commit(session, write)
