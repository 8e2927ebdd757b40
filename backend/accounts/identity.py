"""Identifies who asks: a token's user, a session's, or the local admin for local requests.

`require` is the only dependency that admits a request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from fastapi import Request
from sqlmodel import Session

from backend.accounts.cookies import check_csrf, session_secret
from backend.accounts.locality import is_local
from backend.accounts.permissions import Permission, Role
from backend.accounts.principals import (
    LOCAL_USER,
    Principal,
    check_permitted,
    principal_by_token,
    principal_named,
)
from backend.accounts.rate_limits import Kind, RateLimits
from backend.accounts.sessions import principal_by_session
from backend.accounts.tokens import TOKEN_PREFIX
from backend.asking import note_principal
from backend.database import Database
from backend.problems import Unauthenticated
from backend.settings import Settings
from backend.web.before_body import before_body
from backend.web.gates import Gates
from backend.web.middleware import SAFE_METHODS

__all__ = [
    "LOCAL_USER",
    "Principal",
    "check_change",
    "principal_named",
    "principal_of",
    "require",
    "sender_of",
]

_OF_PAGES = "/_dash"
_WHO = "Sign in at /sign-in, or send a token as `Authorization: Bearer maat_...`."
_LOCAL = (
    " Only the user who runs Maat needs neither, on the same machine and with no proxy between."
)


class SessionOver(Unauthenticated):
    """The cookie of a session that has ended, or of another Maat at this address.

    On the machine itself it does not count as no cookie: who was signed in as somebody else would
    become the administrator without a word.
    """

    remedy = "Sign in again, or sign out: that takes the cookie away."


@before_body
async def principal_of(request: Request) -> Principal:
    """Return who asks; looked up once per request, in its own read-only transaction.

    Raises Unauthenticated if the request names no known user, TooManyRequests.
    """
    known: Principal | None = getattr(request.state, "principal", None)
    if known is None:
        known = request.state.principal = await identified(request)
        # What a page asks for is counted where it arrives at the API.
        if not request.scope["path"].startswith(_OF_PAGES):
            kind = Kind.READS if request.method in SAFE_METHODS else Kind.CHANGES
            _limits(request).take(known, kind)
    note_principal(known)
    return known


@before_body
async def signing_out(request: Request) -> Principal | None:
    """Return who signs out; None if the session is over already.

    Raises Unauthenticated, CsrfFailed.
    """
    try:
        principal: Principal = await principal_of(request)
    except SessionOver:
        return None
    check_permitted(principal, Permission.ACCOUNT_MANAGE)
    return principal


signing_out.permission = Permission.ACCOUNT_MANAGE  # type: ignore[attr-defined]


@before_body
async def a_simulation(request: Request) -> None:
    """Count a request to simulate, once. Raises TooManyRequests."""
    if not getattr(request.state, "counts_as_simulation", False):
        request.state.counts_as_simulation = True
        _limits(request).take(await principal_of(request), Kind.SIMULATIONS)


def _limits(request: Request) -> RateLimits:
    limits: RateLimits = request.app.state.rate_limits
    return limits


async def identified(request: Request) -> Principal:
    """Look up who asks, now. Raises Unauthenticated, SessionOver, CsrfFailed."""
    found = await sender_of(request)
    check_change(request, found)
    return found


def check_change(request: Request, sender: Principal) -> None:
    """Raise CsrfFailed for a change by a session that does not bear the session's token."""
    secret = session_secret(request) if sender.credential.kind == "session" else None
    if secret is not None:
        check_csrf(request, secret)


async def sender_of(request: Request) -> Principal:
    """Look up whose credentials a request bears, whatever it asks for.

    Raises Unauthenticated, SessionOver.

    A token counts before a session, and what is no good is not replaced by anything.
    """
    authorization = request.headers.get("authorization")
    settings: Settings = request.app.state.settings
    database: Database = request.app.state.database
    if authorization is not None:
        secret = _bearer(authorization)
        return await _looked_up(
            request, partial(principal_by_token, secret=secret, database=database)
        )
    cookie = session_secret(request)
    if cookie is not None:
        try:
            return await _looked_up(
                request,
                partial(principal_by_session, secret=cookie, database=database, settings=settings),
            )
        except Unauthenticated as over:
            raise SessionOver(over.detail) from over
    if needs_no_sign_in(request):
        return await _looked_up(request, partial(principal_named, name=LOCAL_USER))
    raise Unauthenticated(_WHO + (_LOCAL if settings.implicit_admin else ""))


def needs_no_sign_in(request: Request) -> bool:
    """Return whether one who is not signed in is the local administrator here."""
    settings: Settings = request.app.state.settings
    return settings.implicit_admin and is_local(request)


async def _looked_up(request: Request, find: Callable[[Session], Principal]) -> Principal:
    database: Database = request.app.state.database
    gates: Gates = request.app.state.gates

    def look_up() -> Principal:
        with database.session_scope(writes=False) as session:
            return find(session)

    found = await gates.door.run(look_up)
    may = _may_run_commands(found, request.app.state.settings)
    return found if may else found.without(Permission.JOBS_RUN_COMMANDS)


def _may_run_commands(principal: Principal, settings: Settings) -> bool:
    """Return whether the operator lets such a user run commands.

    A process on this machine may count as the administrator, and so would a command of anyone.
    """
    is_admin = principal.role is Role.CLUSTER_ADMIN
    return settings.allow_commands and (is_admin or not settings.implicit_admin)


def require(permission: Permission) -> Callable[..., Awaitable[Principal]]:
    """Make the dependency of a route: the principal, who must have this permission.

    It runs before the body is read: who may not send one is refused without.
    """

    @before_body
    async def permitted(request: Request) -> Principal:
        principal: Principal = await principal_of(request)
        check_permitted(principal, permission)
        return principal

    # A test reads it from every route.
    permitted.permission = permission  # type: ignore[attr-defined]
    return permitted


def _bearer(authorization: str) -> str:
    scheme, _, secret = authorization.partition(" ")
    if scheme.lower() != "bearer" or not secret.startswith(TOKEN_PREFIX):
        raise Unauthenticated("The Authorization header is not `Bearer maat_...`.")
    return secret
