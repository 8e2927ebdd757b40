"""Identifies who asks: a token's user, or the local admin for local requests.

`require` is the only dependency that admits a request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Any

from fastapi import Depends, Request
from sqlalchemy.exc import OperationalError
from sqlmodel import Session, col, select, update

from backend.accounts.locality import is_local
from backend.accounts.models import ApiToken, Tenant, User
from backend.accounts.permissions import (
    ACTS_FOR_TENANT,
    PERMISSIONS,
    SEES_ALL_TENANTS,
    Permission,
    Role,
)
from backend.accounts.tokens import TOKEN_PREFIX, digest
from backend.clocktime import utc_now
from backend.database import Database, after_commit
from backend.problems import Forbidden, Unauthenticated
from backend.settings import Settings
from backend.web.before_body import before_body
from backend.web.gates import Gates

LOCAL_USER = "local"
_TOUCH_EVERY = timedelta(minutes=5)


@dataclass(frozen=True)
class Principal:
    """A user who asks, and what they may do."""

    user_id: str
    user_name: str
    tenant_id: str
    tenant_name: str
    role: Role
    permissions: frozenset[Permission]

    @property
    def sees_all_tenants(self) -> bool:
        return self.role in SEES_ALL_TENANTS

    def may_see(self, tenant_id: str) -> bool:
        return self.sees_all_tenants or tenant_id == self.tenant_id

    def without(self, permission: Permission) -> Principal:
        return replace(self, permissions=self.permissions - {permission})

    def may_change(self, *, owner_id: str, tenant_id: str) -> bool:
        """Return whether this principal may change a row.

        Its owner may, a manager of its tenant may, and a cluster admin may.
        """
        return owner_id == self.user_id or (
            self.role in ACTS_FOR_TENANT and self.may_see(tenant_id)
        )


@before_body
async def principal_of(request: Request) -> Principal:
    """Return who asks; looked up once per request, in its own read-only transaction.

    Raises Unauthenticated if the request names no known user.
    """
    known: Principal | None = getattr(request.state, "principal", None)
    if known is None:
        known = request.state.principal = await _identified(request)
    return known


async def _identified(request: Request) -> Principal:
    authorization = request.headers.get("authorization")
    settings: Settings = request.app.state.settings
    if authorization is not None:
        _check_bearer(authorization)
        return await _looked_up(
            request,
            partial(_by_token, authorization=authorization, database=request.app.state.database),
        )
    if settings.implicit_admin and is_local(request):
        return await _looked_up(request, partial(principal_named, name=LOCAL_USER))
    raise Unauthenticated(
        "Send a token as `Authorization: Bearer maat_...`. Only the user who runs Maat needs none, "
        "on the same machine and with no proxy between."
    )


async def _looked_up(request: Request, find: Callable[[Session], Principal]) -> Principal:
    database: Database = request.app.state.database
    gates: Gates = request.app.state.gates

    def look_up() -> Principal:
        with database.session_scope(writes=False) as session:
            return find(session)

    found = await gates.door.run(look_up)
    settings: Settings = request.app.state.settings
    return found if settings.allow_commands else found.without(Permission.JOBS_RUN_COMMANDS)


def require(permission: Permission) -> Callable[..., Awaitable[Principal]]:
    """Make the dependency of a route: the principal, who must have this permission."""

    async def permitted(principal: Annotated[Principal, Depends(principal_of)]) -> Principal:
        if permission not in principal.permissions:
            raise Forbidden(
                f"{principal.user_name} ({principal.role}) "
                f"does not have the permission {permission}."
            )
        return principal

    # A test reads it from every route.
    permitted.permission = permission  # type: ignore[attr-defined]
    return permitted


def _check_bearer(authorization: str) -> None:
    scheme, _, secret = authorization.partition(" ")
    if scheme.lower() != "bearer" or not secret.startswith(TOKEN_PREFIX):
        raise Unauthenticated("The Authorization header is not `Bearer maat_...`.")


def _by_token(session: Session, *, authorization: str, database: Database) -> Principal:
    secret = authorization.partition(" ")[2]
    now = utc_now()
    token = session.exec(select(ApiToken).where(ApiToken.token_hash == digest(secret))).first()
    if (
        token is None
        or token.revoked_at is not None
        or (token.expires_at is not None and token.expires_at <= now)
    ):
        raise Unauthenticated("The token is unknown, revoked or expired.")
    principal = _principal(session, col(User.id) == token.user_id)
    _touch(session, token, now, database)
    if token.scopes is None:
        return principal
    held_to = principal.permissions & {Permission(scope) for scope in token.scopes}
    return Principal(**(vars(principal) | {"permissions": frozenset(held_to)}))


def principal_named(session: Session, name: str) -> Principal:
    """Return the active user of this name. Raises Unauthenticated if there is none."""
    return _principal(session, col(User.name) == name)


def _principal(session: Session, predicate: Any) -> Principal:
    found = session.exec(
        select(User, Tenant).join(Tenant, col(Tenant.id) == col(User.tenant_id)).where(predicate)
    ).first()
    if found is None or not found[0].active:
        raise Unauthenticated("The user does not exist or is not active.")
    user, tenant = found
    role = Role(user.role)
    return Principal(user.id, user.name, tenant.id, tenant.name, role, PERMISSIONS[role])


def _touch(session: Session, token: ApiToken, now: datetime, database: Database) -> None:
    """Record the token's use now and then, in its own transaction that never waits.

    Reading must not need the writer's lock.
    """
    if token.last_used_at is not None and timedelta(0) <= now - token.last_used_at < _TOUCH_EVERY:
        return
    token_id = token.id

    def write() -> None:
        # If the database is busy, the next use is recorded instead.
        with suppress(OperationalError), database.session_scope(hasty=True) as own:
            own.execute(
                update(ApiToken).where(col(ApiToken.id) == token_id).values(last_used_at=now)
            )

    after_commit(session, write)
