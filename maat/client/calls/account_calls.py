"""Calls about accounts: sessions, tenants, users and tokens."""

from __future__ import annotations

from maat.api.accounts import (
    EndedOut,
    SessionOut,
    SignInWaysOut,
    TenantChanges,
    TenantOut,
    TokenBody,
    TokenMadeOut,
    TokenOut,
    UserChanges,
    UserOut,
)
from maat.api.fields import Page
from maat.client.calls.core import (
    Call,
    Fields,
    as_json,
    given_of,
    keyed_by,
    path_of,
    version_of,
)
from maat.vocabulary import Role, UserKind


def sign_in_ways() -> Call[SignInWaysOut]:
    return Call("GET", path_of("sign-in-ways"))


def change_own_password(old: str, new: str) -> Call[EndedOut]:
    return Call("POST", path_of("me", "password"), body={"old_password": old, "new_password": new})


def sessions(*, limit: int = 100, cursor: str | None = None) -> Call[Page[SessionOut]]:
    """List the browsers in which you are signed in."""
    return Call("GET", path_of("me", "sessions"), given_of(limit=limit, cursor=cursor))


def end_session(session_id: str) -> Call[None]:
    return Call("DELETE", path_of("me", "sessions", session_id))


def end_other_sessions() -> Call[EndedOut]:
    return Call("DELETE", path_of("me", "sessions"))


def tenants(*, limit: int = 500, cursor: str | None = None) -> Call[Page[TenantOut]]:
    return Call("GET", path_of("tenants"), given_of(limit=limit, cursor=cursor))


def tenant(named: str) -> Call[TenantOut]:
    return Call("GET", path_of("tenants", named))


def create_tenant(name: str, *, idempotency_key: str | None = None) -> Call[TenantOut]:
    return Call("POST", path_of("tenants"), body={"name": name}, headers=keyed_by(idempotency_key))


def change_tenant(named: str, changes: TenantChanges | Fields, *, version: int) -> Call[TenantOut]:
    return Call(
        "PATCH", path_of("tenants", named), body=as_json(changes), headers=version_of(version)
    )


def remove_tenant(named: str) -> Call[None]:
    return Call("DELETE", path_of("tenants", named))


def users(
    *,
    tenant: str | None = None,
    role: Role | None = None,
    kind: UserKind | None = None,
    active: bool | None = None,
    q: str | None = None,
    limit: int = 500,
    cursor: str | None = None,
) -> Call[Page[UserOut]]:
    query = given_of(
        tenant=tenant, role=role, kind=kind, active=active, q=q, limit=limit, cursor=cursor
    )
    return Call("GET", path_of("users"), query)


def user(named: str) -> Call[UserOut]:
    return Call("GET", path_of("users", named))


def create_user(body: Fields, *, idempotency_key: str | None = None) -> Call[UserOut]:
    """Make a user. `body`: the fields of UserBody as plain data, the password too."""
    return Call("POST", path_of("users"), body=as_json(body), headers=keyed_by(idempotency_key))


def change_user(named: str, changes: UserChanges | Fields, *, version: int) -> Call[UserOut]:
    return Call(
        "PATCH", path_of("users", named), body=as_json(changes), headers=version_of(version)
    )


def remove_user(named: str) -> Call[None]:
    return Call("DELETE", path_of("users", named))


def set_password(named: str, password: str) -> Call[UserOut]:
    return Call(
        "POST", path_of("users", named, "actions", "set-password"), body={"password": password}
    )


def sign_out_user(named: str) -> Call[EndedOut]:
    """End all sessions of a user."""
    return Call("POST", path_of("users", named, "actions", "sign-out"))


def tokens(
    *, user: str | None = None, limit: int = 100, cursor: str | None = None
) -> Call[Page[TokenOut]]:
    """List tokens that you may see, newest first. `user`: whose; `me` for your own."""
    return Call("GET", path_of("tokens"), given_of(user=user, limit=limit, cursor=cursor))


def token(token_id: str) -> Call[TokenOut]:
    return Call("GET", path_of("tokens", token_id))


def create_token(
    body: TokenBody | Fields, *, idempotency_key: str | None = None
) -> Call[TokenMadeOut]:
    return Call("POST", path_of("tokens"), body=as_json(body), headers=keyed_by(idempotency_key))


def revoke_token(token_id: str) -> Call[TokenOut]:
    return Call("POST", path_of("tokens", token_id, "actions", "revoke"))
