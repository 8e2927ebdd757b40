"""The cookies of a browser's session, and the token that guards it against other sites.

The session's cookie is out of reach of scripts. The second one holds the CSRF token, which scripts
of Maat's own pages send back as a header: another site's page makes the browser send cookies, and
can neither read them nor add headers.
"""

from __future__ import annotations

import hashlib
import hmac

from fastapi import Request, Response

from backend.accounts.locality import is_loopback
from backend.problems import Problem
from backend.settings import Settings
from backend.web.middleware import SAFE_METHODS

CSRF_HEADER = "X-CSRF-Token"
_SESSION, _CSRF = "maat_session", "maat_csrf"
_SECURE = "__Host-"  # browsers keep such a cookie only if it is Secure and of this very host


class CsrfFailed(Problem):
    """A request with a session's cookie must repeat its CSRF token as X-CSRF-Token."""

    remedy = "Load the page again. Programs send a token instead."
    slug, title, status = "csrf-token", "The request does not come from a page of Maat", 403


class PlainHttp(Problem):
    """Passwords and sessions would travel readable by others."""

    remedy = (
        "Serve Maat by https and set MAAT_PUBLIC_URL to that address, or open it on the machine "
        "itself."
    )
    slug, title, status = "plain-http", "Nobody can sign in over plain http", 403


def is_secure(request: Request) -> bool:
    """Return whether cookies go over https only: always, but on this machine.

    Behind a proxy that ends TLS, the request itself may look like plain http.
    """
    if request.url.scheme == "https":
        return True
    return not is_loopback(request.url.hostname or "")


def why_not_here(request: Request) -> str | None:
    """Return why a browser cannot sign in at this address; None if it can."""
    settings: Settings = request.app.state.settings
    if (
        request.url.scheme == "https"
        or is_loopback(request.url.hostname or "")
        or settings.public_url.startswith("https:")
    ):
        return None
    return (
        "This address is plain http: a password would travel readable by others. "
        "Serve Maat by https and set MAAT_PUBLIC_URL, or open it on the machine itself."
    )


def refuse_plain_http(request: Request) -> None:
    """Raise PlainHttp if a browser cannot sign in at this address."""
    reason = why_not_here(request)
    if reason is not None:
        raise PlainHttp(reason)


def session_secret(request: Request) -> str | None:
    """Return the secret of the session's cookie, if the browser sent one.

    Only by the name that this address sets: a cookie of another name may be somebody else's.
    """
    return request.cookies.get(_name(request, _SESSION)) or None


def csrf_token(secret: str) -> str:
    """Return the token of a session. It follows from the secret, and not the other way round."""
    return hashlib.sha256(f"csrf {secret}".encode()).hexdigest()


def check_csrf(request: Request, secret: str) -> None:
    """Refuse a change by cookie that does not bear the session's token. Raises CsrfFailed."""
    if request.method in SAFE_METHODS:
        return
    given = request.headers.get(CSRF_HEADER, "")
    if not hmac.compare_digest(given.encode(), csrf_token(secret).encode()):
        raise CsrfFailed(
            f"The header {CSRF_HEADER} is missing or not the session's. Load the page again."
        )


def set_session_cookies(request: Request, response: Response, secret: str) -> None:
    settings: Settings = request.app.state.settings
    for name, value, hidden in (
        (_SESSION, secret, True),
        (_CSRF, csrf_token(secret), False),
    ):
        response.set_cookie(
            _name(request, name),
            value,
            max_age=int(settings.session_days * 86_400),
            path="/",
            secure=is_secure(request),
            httponly=hidden,
            samesite="lax",
        )


def clear_session_cookies(request: Request, response: Response) -> None:
    for name, hidden in ((_SESSION, True), (_CSRF, False)):
        response.delete_cookie(
            _name(request, name),
            path="/",
            secure=is_secure(request),
            httponly=hidden,
            samesite="lax",
        )


def _name(request: Request, name: str) -> str:
    return _SECURE + name if is_secure(request) else name
