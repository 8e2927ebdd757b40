"""Who asks: a bearer token's user, or the local admin for a request of the same machine. `require` is the one dependency that lets in."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any

from fastapi import Depends, Request
from sqlmodel import Session, col, select, update

from backend.accounts.models import ApiToken, Tenant, User
from backend.accounts.permissions import ACTS_FOR_TENANT, PERMISSIONS, SEES_ALL_TENANTS, Permission, Role
from backend.accounts.tokens import TOKEN_PREFIX, digest
from backend.clocktime import utc_now
from backend.database import Database, after_commit
from backend.problems import Forbidden, Unauthenticated
from backend.web.dependencies import SessionDep, SettingsDep

LOCAL_USER = "local"
_TOUCH_EVERY = timedelta(minutes=5)
_PROXY_HEADERS = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip")


@dataclass(frozen=True)
class Principal:
    """Somebody who asks, and what they may do."""

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

    def may_change(self, *, owner_id: str, tenant_id: str) -> bool:
        """Its owner may, who manages its tenant may, an admin of the cluster may."""
        return owner_id == self.user_id or (self.role in ACTS_FOR_TENANT and self.may_see(tenant_id))


def principal_of(request: Request, session: SessionDep, settings: SettingsDep) -> Principal:
    """Raises Unauthenticated where nobody that Maat knows is asking."""
    authorization = request.headers.get("authorization")
    if authorization is not None:
        return _by_token(session, authorization, request.app.state.database)
    if settings.implicit_admin and is_local(request):
        return _by_name(session, LOCAL_USER)
    raise Unauthenticated("Send a token as `Authorization: Bearer maat_...`. Only requests of the same machine need none.")


def require(permission: Permission) -> Callable[..., Principal]:
    """The dependency of a route: the principal, who has this permission."""

    def permitted(principal: Annotated[Principal, Depends(principal_of)]) -> Principal:
        if permission not in principal.permissions:
            raise Forbidden(f"{principal.user_name} ({principal.role}) does not have the permission {permission}.")
        return principal

    permitted.permission = permission  # type: ignore[attr-defined]  # a test asks every route for it
    return permitted


def is_local(request: Request) -> bool:
    """Whether a request comes from this machine, for this machine: a rebound name or a proxy in between makes it somebody else's."""
    if request.client is None or any(name in request.headers for name in _PROXY_HEADERS):
        return False
    return _is_loopback(request.client.host) and _is_loopback(request.url.hostname or "")


def is_rebound(request: Request) -> bool:
    """Whether a request of this machine, without a token, asks for a name that is not this machine's: another site's page sent it."""
    if request.client is None or any(name in request.headers for name in (*_PROXY_HEADERS, "authorization")):
        return False
    return _is_loopback(request.client.host) and not _is_loopback(request.url.hostname or "")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _by_token(session: Session, authorization: str, database: Database) -> Principal:
    scheme, _, secret = authorization.partition(" ")
    if scheme.lower() != "bearer" or not secret.startswith(TOKEN_PREFIX):
        raise Unauthenticated("The Authorization header is no `Bearer maat_...`.")
    now = utc_now()
    token = session.exec(select(ApiToken).where(ApiToken.token_hash == digest(secret))).first()
    if token is None or token.revoked_at is not None or (token.expires_at is not None and token.expires_at <= now):
        raise Unauthenticated("The token is unknown, revoked or expired.")
    principal = _principal(session, col(User.id) == token.user_id)
    _touch(session, token, now, database)
    if token.scopes is None:
        return principal
    held_to = principal.permissions & {Permission(scope) for scope in token.scopes}
    return Principal(**(vars(principal) | {"permissions": frozenset(held_to)}))


def _by_name(session: Session, name: str) -> Principal:
    return _principal(session, col(User.name) == name)


def _principal(session: Session, predicate: Any) -> Principal:
    found = session.exec(select(User, Tenant).join(Tenant, col(Tenant.id) == col(User.tenant_id)).where(predicate)).first()
    if found is None or not found[0].active:
        raise Unauthenticated("The user does not exist or is not active.")
    user, tenant = found
    role = Role(user.role)
    return Principal(user.id, user.name, tenant.id, tenant.name, role, PERMISSIONS[role])


def _touch(session: Session, token: ApiToken, now: datetime, database: Database) -> None:
    """Note the use, now and then, in a transaction of its own: reading must not need the writer's lock."""
    if token.last_used_at is not None and now - token.last_used_at < _TOUCH_EVERY:
        return
    token_id = token.id

    def write() -> None:
        with database.session_scope() as own:
            own.execute(update(ApiToken).where(col(ApiToken.id) == token_id).values(last_used_at=now))

    after_commit(session, write)
