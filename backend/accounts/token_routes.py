"""Routes of tokens: one's own, and those of users whom one manages."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from sqlmodel import Session, col, select

from backend.accounts.identity import Principal, require
from backend.accounts.models import ApiToken, User
from backend.accounts.permissions import Permission
from backend.accounts.token_service import (
    find_token,
    make_token,
    revoke_token,
    show_tokens,
    visible_tokens,
)
from backend.accounts.users import find_user
from backend.idempotency import Answer, KeyHeader, Once, answer_once
from backend.pagination import Order, PageAsked, paginate
from backend.problems import NotFound
from backend.web.dependencies import SessionDep, SettingsDep
from backend.web.strict_json import StrictRoute
from maat.api.accounts import TokenBody, TokenMadeOut, TokenOut
from maat.api.fields import Page

router = APIRouter(prefix="/tokens", tags=["accounts"], route_class=StrictRoute)

Self = Annotated[Principal, Depends(require(Permission.ACCOUNT_MANAGE))]


@router.get("", operation_id="listTokens")
def list_tokens(
    session: SessionDep,
    principal: Self,
    asked: PageAsked,
    user: Annotated[
        str | None, Query(max_length=200, description="By name or id; `me` for your own.")
    ] = None,
) -> Page[TokenOut]:
    """Newest first: your own, and those of users whom you manage."""
    statement = (
        select(ApiToken)
        .join(User, col(User.id) == col(ApiToken.user_id))
        .where(visible_tokens(principal))
    )
    if user is not None:
        statement = statement.where(ApiToken.user_id == _whose(session, principal, user))
    found = asked.linked(
        paginate(
            session,
            statement,
            order=Order([col(ApiToken.id)], descending=True),
            filters={"list": "tokens", "for": principal.user_id, "user": user},
            limit=asked.limit,
            cursor=asked.cursor,
        )
    )
    return Page(items=show_tokens(session, found.items), next_cursor=found.next_cursor)


def _whose(session: Session, principal: Principal, user: str) -> str:
    """Return the id of the user whose tokens are asked for. Raises NotFound."""
    if user in ("me", principal.user_name, principal.user_id):
        return principal.user_id
    if Permission.TOKENS_MANAGE not in principal.permissions:
        raise NotFound(f"There is no user {user!r} whose tokens you may see.")
    return find_user(session, principal, user).id


@router.post("", operation_id="createToken", status_code=201, response_model=TokenMadeOut)
def create_token(
    session: SessionDep,
    settings: SettingsDep,
    principal: Self,
    body: TokenBody,
    key: KeyHeader = None,
) -> Response:
    """Make a token for yourself, or for a service account. Its secret is shown this once.

    It may no more than its user and than you. Made with a token, it ends with that one.
    """

    def answer() -> Answer:
        row, secret = make_token(session, principal, body)
        (shown,) = show_tokens(session, [row])
        headers = {"Location": f"/api/v1/tokens/{row.id}", "Cache-Control": "no-store"}
        return Answer(
            201,
            TokenMadeOut(**shown, secret=secret),
            headers,
            kept=TokenMadeOut(**shown, secret=None),
        )

    once = Once(principal.user_id, "POST /tokens", key, body)
    return answer_once(session, once, settings, answer)


@router.get("/{token_id}", operation_id="getToken")
def read_token(session: SessionDep, principal: Self, token_id: str) -> TokenOut:
    token, _ = find_token(session, principal, token_id)
    return show_tokens(session, [token])[0]


@router.post("/{token_id}/actions/revoke", operation_id="revokeToken")
def revoke(session: SessionDep, principal: Self, token_id: str) -> TokenOut:
    """Revoke a token and those made with it, at once and for good."""
    return show_tokens(session, [revoke_token(session, principal, token_id)])[0]
