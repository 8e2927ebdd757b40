"""Routes by which a browser signs in at an OpenID Connect provider and comes back.

They answer with redirections: people see them. Waiting for the provider takes no place of others.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from backend.accounts import oidc
from backend.accounts.cookies import is_secure, refuse_plain_http, set_session_cookies
from backend.accounts.local_paths import local_path
from backend.accounts.oidc import Claims, OidcRefused
from backend.accounts.oidc_people import person_of
from backend.accounts.routes import visit_of
from backend.accounts.sessions import begin_session, end_session
from backend.accounts.signing_in import Visit, record_sign_in
from backend.audit.changes import VISITOR, Change, record
from backend.database import Database
from backend.problems import NotFound
from backend.settings import Settings
from backend.web.gates import Gates

log = logging.getLogger(__name__)
router = APIRouter(prefix="/sign-in/oidc", tags=["accounts"])

_COOKIE = "maat_oidc"
_MOST_PARAMETER = 4000  # characters


@router.get("", operation_id="beginOidc", status_code=303, response_class=RedirectResponse)
async def begin(
    request: Request,
    next_path: Annotated[str | None, Query(alias="next", max_length=2000)] = None,
) -> Response:
    """Go to the provider to sign in. `next`: the page of Maat to come back to."""
    settings = _settings(request)
    refuse_plain_http(request)
    gates: Gates = request.app.state.gates
    try:
        address, cookie = await gates.providers.run(
            partial(oidc.begin, settings, local_path(next_path))
        )
    except OidcRefused as refused:
        return _back(refused, local_path(next_path))
    answer = RedirectResponse(address, status_code=303, headers={"Cache-Control": "no-store"})
    answer.set_cookie(
        _cookie_name(request),
        cookie,
        max_age=oidc.PENDING_SECONDS,
        path="/",
        secure=is_secure(request),
        httponly=True,
        samesite="lax",
    )
    return answer


@router.get(
    "/callback", operation_id="finishOidc", status_code=303, response_class=RedirectResponse
)
async def finish(request: Request) -> Response:
    """Where the provider sends the browser back to. Begins a session, or says why not."""
    settings = _settings(request)
    gates: Gates = request.app.state.gates
    database: Database = request.app.state.database
    given = {name: value[:_MOST_PARAMETER] for name, value in request.query_params.items()}
    next_path = local_path(None)
    claims: Claims | None = None
    try:
        pending = oidc.pending_of(settings, request.cookies.get(_cookie_name(request)))
        next_path = local_path(pending.next_path)
        claims = await gates.providers.run(partial(oidc.finish, settings, pending, given))
        async with gates.passed_by("POST"):
            secret = await gates.in_thread(
                partial(_signed_in, database, settings, claims, visit_of(request))
            )
    except OidcRefused as refused:
        if claims is not None:  # the provider knows this person: a stranger can cause no record
            async with gates.passed_by("POST"):
                await gates.in_thread(partial(_write_refusal, database, refused, visit_of(request)))
        answer = _back(refused, next_path)
    else:
        answer = RedirectResponse(next_path, status_code=303)
        set_session_cookies(request, answer, secret)
    answer.headers["Cache-Control"] = "no-store"
    answer.delete_cookie(
        _cookie_name(request), path="/", secure=is_secure(request), httponly=True, samesite="lax"
    )
    return answer


def _signed_in(database: Database, settings: Settings, claims: Claims, visit: Visit) -> str:
    with database.session_scope() as session:
        user = person_of(session, settings, claims)
        if visit.held is not None:
            end_session(session, visit.held)
        row, secret = begin_session(session, user, settings, how="oidc", browser=visit.browser)
        record_sign_in(session, user, row, visit)
    return secret


def _write_refusal(database: Database, refused: OidcRefused, visit: Visit) -> None:
    after = {"how": "oidc", "code": refused.code, "address": visit.address}
    with database.session_scope() as session:
        record(session, Change(VISITOR, "sign-in refused", "", {}, after))


def _back(refused: OidcRefused, next_path: str) -> Response:
    log.warning("a sign-in by the provider failed (%s): %s", refused.code, refused)
    query = urlencode({"refused": refused.code, "next": next_path})
    return RedirectResponse(f"/sign-in?{query}", status_code=303)


def _settings(request: Request) -> Settings:
    settings: Settings = request.app.state.settings
    if not settings.has_oidc:
        raise NotFound("No OpenID Connect provider is set.")
    return settings


def _cookie_name(request: Request) -> str:
    return f"__Host-{_COOKIE}" if is_secure(request) else _COOKIE
