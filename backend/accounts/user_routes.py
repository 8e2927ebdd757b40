"""Routes of users. A tenant's manager sees and changes those of the tenant only."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import SecretStr
from sqlmodel import Session, col, func, select

from backend.accounts import users
from backend.accounts.identity import Principal, require
from backend.accounts.models import User
from backend.accounts.passwords import hashed
from backend.accounts.permissions import Permission
from backend.accounts.tenants import find_tenant
from backend.idempotency import Answer, KeyHeader, Once, answer_prepared
from backend.pagination import Order, PageAsked, paginate
from backend.problems import Forbidden
from backend.secret_key import secret_key
from backend.settings import Settings
from backend.web.conditional import IfMatch, etag
from backend.web.dependencies import ReadingDep, SessionDep, SettingsDep
from backend.web.strict_json import StrictRoute
from maat.api.accounts import EndedOut, PasswordBody, UserBody, UserChanges, UserOut
from maat.api.fields import Page
from maat.vocabulary import Role, UserKind

router = APIRouter(prefix="/users", tags=["accounts"], route_class=StrictRoute)

Reader = Annotated[Principal, Depends(require(Permission.USERS_READ))]
Manager = Annotated[Principal, Depends(require(Permission.USERS_MANAGE))]
Text = Annotated[str | None, Query(max_length=200)]


@router.get("", operation_id="listUsers")
def list_users(
    session: SessionDep,
    principal: Reader,
    asked: PageAsked,
    tenant: Text = None,
    role: Role | None = None,
    kind: UserKind | None = None,
    active: bool | None = None,
    q: Annotated[str | None, Query(max_length=200, description="Part of the name.")] = None,
) -> Page[UserOut]:
    """Oldest first."""
    statement = select(User)
    if not principal.sees_all_tenants:
        statement = statement.where(User.tenant_id == principal.tenant_id)
    filters: dict[str, Any] = {"list": "users", "for": principal.tenant_id, "tenant": tenant}
    if tenant is not None:
        statement = statement.where(User.tenant_id == find_tenant(session, principal, tenant).id)
    for name, value in (("role", role), ("kind", kind), ("active", active)):
        if value is not None:
            statement = statement.where(getattr(User, name) == value)
            filters[name] = value
    if q:
        statement = statement.where(func.lower(col(User.name)).contains(q.lower(), autoescape=True))
        filters["q"] = q
    found = asked.linked(
        paginate(
            session,
            statement,
            order=Order([col(User.id)]),
            filters=filters,
            limit=asked.limit,
            cursor=asked.cursor,
        )
    )
    return Page(items=users.show_users(session, found.items), next_cursor=found.next_cursor)


@router.post("", operation_id="createUser", status_code=201, response_model=UserOut)
def create_user(
    session: SessionDep,
    reading: ReadingDep,
    settings: SettingsDep,
    principal: Manager,
    body: UserBody,
    key: KeyHeader = None,
) -> Response:
    """Make a person or a service account, of a role not above your own."""

    def answer(password_hash: str | None) -> Answer:
        user = users.create_user(session, principal, body, password_hash)
        (shown,) = users.show_users(session, [user])
        headers = {"Location": f"/api/v1/users/{user.id}", "ETag": etag(user.version)}
        return Answer(201, shown, headers)

    hidden = partial(_recognised, password=body.password, settings=settings)
    once = Once(principal.user_id, "POST /users", key, body, hidden)
    return answer_prepared(
        reading,
        session,
        once,
        settings,
        prepare=lambda _: users.prepare_password(body),
        answer=answer,
    )


@router.get("/{user}", operation_id="getUser")
def read_user(session: SessionDep, principal: Reader, user: str, response: Response) -> UserOut:
    """By id or by name."""
    return _shown(session, users.find_user(session, principal, user), response)


@router.patch("/{user}", operation_id="changeUser")
def change_user(
    session: SessionDep,
    settings: SettingsDep,
    principal: Manager,
    user: str,
    body: UserChanges,
    response: Response,
    if_match: IfMatch = None,
) -> UserOut:
    """Change role or activity, at once for tokens and sessions too. Needs If-Match.

    An administrator must be left.
    """
    changed = users.change_user(session, settings, principal, user, body, if_match)
    return _shown(session, changed, response)


@router.delete("/{user}", operation_id="removeUser", status_code=204)
def remove_user(
    session: SessionDep,
    settings: SettingsDep,
    principal: Manager,
    user: str,
    if_match: IfMatch = None,
) -> None:
    """Remove a user who owns nothing; deactivate all others."""
    users.remove_user(session, settings, principal, user, if_match)


@router.post("/{user}/actions/set-password", operation_id="setPassword")
def set_password(
    request: Request, principal: Manager, user: str, body: PasswordBody, response: Response
) -> UserOut:
    """Give a person another password, and end their sessions. Your own: POST /me/password."""
    fresh = hashed(body.password)
    with request.app.state.database.session_scope() as session:
        found = users.find_user(session, principal, user)
        if found.id == principal.user_id and principal.credential.kind != "local":
            raise Forbidden("Change your own password at /me/password, with the present one.")
        changed = users.set_password(session, principal, user, body.password, fresh)
        return _shown(session, changed, response)


@router.post("/{user}/actions/sign-out", operation_id="signOutUser")
def sign_out_user(session: SessionDep, principal: Manager, user: str) -> EndedOut:
    """End all sessions of a user. Tokens stay."""
    return EndedOut(ended=users.sign_out(session, principal, user))


def _shown(session: Session, user: User, response: Response) -> UserOut:
    response.headers["ETag"] = etag(user.version)
    return users.show_users(session, [user])[0]


def _recognised(
    request: Mapping[str, Any], *, password: SecretStr | None, settings: Settings
) -> dict[str, Any]:
    """Return by what a repeated request is recognised; of a password, a keyed digest."""
    named = {name: value for name, value in request.items() if name != "password"}
    if password is None:
        return named
    return named | {"password": secret_key(settings).fingerprint(password.get_secret_value())}
