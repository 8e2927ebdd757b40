"""Makes and revokes tokens for those who may. Commits nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col, select

from backend.accounts.changes import one_at_a_time
from backend.accounts.models import ApiToken, Tenant, User
from backend.accounts.permissions import PERMISSIONS, Permission, Role
from backend.accounts.principals import Principal
from backend.accounts.refusals import invalid
from backend.accounts.token_makers import Maker, makers_by_token
from backend.accounts.tokens import store_token
from backend.accounts.users import find_user, may_change_user
from backend.answers import answer_of
from backend.audit.changes import Actor, Change, actor_of, record
from backend.clocktime import utc_now
from backend.problems import Forbidden, NotFound
from maat.api.accounts import TokenBody, TokenOut
from maat.api.fields import rfc3339
from maat.vocabulary import UserKind


def make_token(session: Session, principal: Principal, body: TokenBody) -> tuple[ApiToken, str]:
    """Store a token; return it with its secret, which is nowhere else.

    It may no more than its user and its maker, and lasts no longer than the token it is made with.
    """
    one_at_a_time(session)
    user = _user_of(session, principal, body.user)
    now = utc_now()
    if body.expires_at is not None and body.expires_at <= now:
        raise invalid(
            "/expires_at",
            "over",
            "The token would have expired already.",
            "Give a time in the future.",
            rfc3339(body.expires_at),
        )
    row, secret = store_token(
        session,
        user,
        name=body.name,
        scopes=_scopes(principal, user, body.scopes),
        expires_at=_end(principal, body.expires_at),
        made_by=principal.user_id,
        made_with=principal.credential.id if principal.credential.kind == "token" else None,
    )
    record_token(session, actor_of(principal), row, user)
    return row, secret


def find_token(session: Session, principal: Principal, token_id: str) -> tuple[ApiToken, User]:
    """Find one's own token, or one of a user whom one manages. Raises NotFound."""
    found = session.exec(
        select(ApiToken, User)
        .join(User, col(User.id) == col(ApiToken.user_id))
        .where(col(ApiToken.id) == token_id, visible_tokens(principal))
    ).first()
    if found is None:
        raise NotFound(f"There is no token {token_id!r}.")
    return found


def visible_tokens(principal: Principal) -> sa.ColumnElement[bool]:
    """Select one's own tokens; those of one's tenant, or all, for who manages tokens."""
    own = col(User.id) == principal.user_id
    if Permission.TOKENS_MANAGE not in principal.permissions:
        return own
    if principal.sees_all_tenants:
        return sa.true()
    return sa.or_(own, col(User.tenant_id) == principal.tenant_id)


def revoke_token(session: Session, principal: Principal, token_id: str) -> ApiToken:
    """Revoke a token, and those that were made with it. Again: no effect."""
    one_at_a_time(session)
    token, user = find_token(session, principal, token_id)
    if user.id != principal.user_id and not may_change_user(principal, user):
        raise Forbidden(f"{user.name} has the role {user.role}: you may not revoke its tokens.")
    for one in _with_descendants(session, token):
        if one.revoked_at is None:
            one.revoked_at = utc_now()
            session.add(one)
            tenant_id = session.get_one(User, one.user_id).tenant_id
            change = Change(actor_of(principal), "revoke token", one.id, tenant_id=tenant_id)
            record(session, change)
    session.flush()
    return token


def record_token(session: Session, actor: Actor, row: ApiToken, user: User) -> None:
    """Write down that a token was made."""
    after = {
        "user": user.name,
        "name": row.name,
        "scopes": row.scopes,
        "expires_at": row.expires_at,
    }
    record(session, Change(actor, "create token", row.id, {}, after, user.tenant_id))


def _with_descendants(session: Session, token: ApiToken) -> list[ApiToken]:
    found, waiting = [token], [token.id]
    while waiting:
        made = session.exec(select(ApiToken).where(col(ApiToken.made_with).in_(waiting))).all()
        found += made
        waiting = [one.id for one in made]
    return found


def show_tokens(session: Session, rows: Sequence[ApiToken]) -> list[TokenOut]:
    now = utc_now()
    ids = {row.user_id for row in rows} | {row.made_by for row in rows if row.made_by}
    statement = select(User, Tenant).join(Tenant, col(Tenant.id) == col(User.tenant_id))
    found = session.exec(statement.where(col(User.id).in_(ids)))
    owners: dict[str, tuple[User, Tenant]] = {user.id: (user, tenant) for user, tenant in found}
    makers = makers_by_token(session, rows)
    return [
        answer_of(
            TokenOut,
            row,
            user=owners[row.user_id][0].name,
            tenant=owners[row.user_id][1].name,
            state=_state(row, now, *owners[row.user_id], makers.get(row.id, ())),
            made_by=_maker(row, owners),
        )
        for row in rows
    ]


def _maker(row: ApiToken, owners: Mapping[str, tuple[User, Tenant]]) -> str | None:
    """Who made a token; another tenant's names never leave it, and are those of administrators."""
    if row.made_by is None or row.made_by not in owners:
        return None
    maker, tenant = owners[row.made_by]
    return maker.name if tenant.id == owners[row.user_id][1].id else "an administrator"


def _state(
    row: ApiToken, now: datetime, user: User, tenant: Tenant, makers: Sequence[Maker | None]
) -> str:
    """Return what a token is worth now: as `principal_by_token` would find it."""
    if row.revoked_at is not None:
        return "revoked"
    if row.expires_at is not None and row.expires_at <= now:
        return "expired"
    may = user.active and tenant.closed_at is None
    if may and all(maker is not None and maker.may_see(tenant.id) for maker in makers):
        return "active"
    return "suspended"


def _user_of(session: Session, principal: Principal, named: str | None) -> User:
    """Return whose token is made. People make their own: nobody acts in another's name."""
    if named is None or named in (principal.user_name, principal.user_id):
        return session.get_one(User, principal.user_id)
    if Permission.TOKENS_MANAGE not in principal.permissions:
        raise Forbidden(
            f"{principal.user_name} ({principal.role}) does not have the permission "
            f"{Permission.TOKENS_MANAGE}, which tokens of others need."
        )
    try:
        user = find_user(session, principal, named)
    except NotFound:
        raise invalid(
            "/user", "unknown_user", "There is no user of this name.", "See GET /users.", named
        ) from None
    if user.kind != UserKind.SERVICE.value:
        raise invalid(
            "/user",
            "not_a_service_account",
            "People make their own tokens.",
            "Give a service account, or leave it out.",
            named,
        )
    if not may_change_user(principal, user):
        raise Forbidden(
            f"A token of {user.name}, a user of role {user.role}, would let you do more than now."
        )
    return user


def _scopes(
    principal: Principal, user: User, asked: Sequence[str] | None
) -> Sequence[Permission] | None:
    """Return the scopes of a new token; None if it may all that its user may. Raises Invalid."""
    possible = PERMISSIONS[Role(user.role)] & principal.grantable
    if asked is None:
        return None if possible == PERMISSIONS[Role(user.role)] else sorted(possible)
    known = {permission.value: permission for permission in Permission}
    for number, scope in enumerate(asked):
        if scope not in known or known[scope] not in possible:
            listed = ", ".join(sorted(possible))
            code, message = (
                ("unknown_scope", "There is no such permission.")
                if scope not in known
                else ("scope_above_own", "You, or the token's user, do not have this permission.")
            )
            raise invalid(f"/scopes/{number}", code, message, f"Use some of {listed}.", scope)
    return sorted({known[scope] for scope in asked})


def _end(principal: Principal, asked: datetime | None) -> datetime | None:
    """Return when a new token expires: with the token it is made with, at the latest."""
    latest: Any = principal.credential.expires_at
    return min((moment for moment in (asked, latest) if moment is not None), default=None)
