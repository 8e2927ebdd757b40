"""Routes of one's own account: who asks, password, sessions."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from sqlmodel import Session, col, select

from backend.accounts.cookies import (
    clear_session_cookies,
    csrf_token,
    refuse_plain_http,
    session_secret,
    set_session_cookies,
    why_not_here,
)
from backend.accounts.identity import (
    Principal,
    needs_no_sign_in,
    principal_of,
    require,
    signing_out,
)
from backend.accounts.models import BrowserSession, User
from backend.accounts.passwords import check_choice, hashed
from backend.accounts.permissions import Permission, Role
from backend.accounts.sessions import begin_session, end_session, end_sessions
from backend.accounts.signing_in import SignedIn, Visit, check_own_password, sign_in
from backend.accounts.users import change_own_password
from backend.answers import answer_of
from backend.audit.changes import Change, actor_of, record
from backend.database import Database
from backend.pagination import Order, PageAsked, paginate
from backend.problems import NotFound
from backend.web.dependencies import SessionDep, SettingsDep
from backend.web.strict_json import StrictRoute
from maat.api.accounts import (
    EndedOut,
    OwnPasswordBody,
    SessionOut,
    SignedInOut,
    SignInBody,
    SignInWaysOut,
)
from maat.api.fields import Page, rfc3339
from maat.api.service import MeOut

router = APIRouter(tags=["accounts"], route_class=StrictRoute)

Self = Annotated[Principal, Depends(require(Permission.ACCOUNT_MANAGE))]


@router.get("/me", operation_id="getMe")
def read_me(session: SessionDep, principal: Annotated[Principal, Depends(principal_of)]) -> MeOut:
    """Who you are to Maat, and what you may do."""
    user = session.get(User, principal.user_id)
    return MeOut(
        user=principal.user_name,
        tenant=principal.tenant_name,
        role=principal.role.value,
        permissions=sorted(permission.value for permission in principal.permissions),
        by=principal.credential.kind,
        has_password=user is not None and user.password_hash is not None,
        may_give=_roles_to_give(principal),
    )


@router.get("/sign-in-ways", operation_id="getSignInWays")
def read_ways(request: Request, settings: SettingsDep) -> SignInWaysOut:
    """How a browser can sign in here. Everybody may ask."""
    label = settings.oidc_label if settings.has_oidc else None
    return SignInWaysOut(oidc=label, problem=why_not_here(request), local=needs_no_sign_in(request))


@router.post("/sessions", operation_id="signIn", status_code=201, response_model=SignedInOut)
def begin(
    request: Request, response: Response, settings: SettingsDep, body: SignInBody
) -> SignedInOut:
    """Sign in from a browser, by name and password; the answer sets the session's cookies.

    Programs need no session: they send a token.
    """
    refuse_plain_http(request)
    database: Database = request.app.state.database
    done = sign_in(database, settings, body.name, body.password, visit_of(request))
    set_session_cookies(request, response, done.secret)
    return _signed_in(done)


@router.delete("/sessions/current", operation_id="signOut", status_code=204)
def end_current(
    session: SessionDep,
    principal: Annotated[Principal | None, Depends(signing_out)],
    request: Request,
) -> Response:
    """Sign this browser out. Of a session that is over, it takes the cookies away."""
    secret = session_secret(request)
    if secret is not None and principal is not None:
        end_session(session, secret)
        _record(session, principal, "sign out", principal.credential.id or "")
    response = Response(status_code=204)
    clear_session_cookies(request, response)
    return response


@router.get("/me/sessions", operation_id="listMySessions")
def list_sessions(session: SessionDep, principal: Self, asked: PageAsked) -> Page[SessionOut]:
    """The browsers in which you are signed in, newest first."""
    found = asked.linked(
        paginate(
            session,
            select(BrowserSession).where(BrowserSession.user_id == principal.user_id),
            order=Order([col(BrowserSession.id)], descending=True),
            filters={"list": "sessions", "user": principal.user_id},
            limit=asked.limit,
            cursor=asked.cursor,
        )
    )
    return found.shown(
        lambda row: answer_of(SessionOut, row, current=row.id == principal.credential.id)
    )


@router.delete("/me/sessions", operation_id="endMySessions")
def end_all(session: SessionDep, principal: Self) -> EndedOut:
    """Sign out everywhere else: in all browsers but the one that asks."""
    ended = end_sessions(session, principal.user_id, but=principal.credential.id)
    if ended:
        _record(session, principal, "sign out elsewhere", principal.user_id)
    return EndedOut(ended=ended)


@router.delete("/me/sessions/{session_id}", operation_id="endMySession", status_code=204)
def end_one(session: SessionDep, principal: Self, session_id: str) -> None:
    """Sign out in one browser."""
    row = session.get(BrowserSession, session_id)
    if row is None or row.user_id != principal.user_id:
        raise NotFound(f"You have no session {session_id!r}.")
    session.delete(row)
    _record(session, principal, "end session", session_id)


@router.post("/me/password", operation_id="changeMyPassword")
def change_password(
    request: Request,
    response: Response,
    settings: SettingsDep,
    principal: Self,
    body: OwnPasswordBody,
) -> EndedOut:
    """Change your password. Ends your sessions; the browser that asks gets a new one."""
    database: Database = request.app.state.database
    name = check_own_password(
        database, settings, principal.user_id, body.old_password, visit_of(request)
    )
    check_choice(body.new_password, user_name=name, pointer="/new_password")
    fresh = hashed(body.new_password)
    with database.session_scope() as session:
        user, ended = change_own_password(session, principal, fresh)
        if principal.credential.kind == "session":
            _, secret = begin_session(
                session, user, settings, how="password", browser=visit_of(request).browser
            )
            set_session_cookies(request, response, secret)
    return EndedOut(ended=ended)


def _record(session: Session, principal: Principal, action: str, target: str) -> None:
    record(session, Change(actor_of(principal), action, target, tenant_id=principal.tenant_id))


def _roles_to_give(principal: Principal) -> list[str]:
    if Permission.USERS_MANAGE not in principal.permissions:
        return []
    return [role.value for role in Role if principal.may_give(role)]


def visit_of(request: Request) -> Visit:
    return Visit(
        address=request.client.host if request.client is not None else "",
        browser=request.headers.get("user-agent", ""),
        held=session_secret(request),
    )


def _signed_in(done: SignedIn) -> SignedInOut:
    return SignedInOut(
        user=done.user.name,
        csrf_token=csrf_token(done.secret),
        expires_at=rfc3339(done.row.expires_at),
    )
