"""The headers that limit what an answer may do in a browser.

It runs no foreign or injected script, is framed by no site and is read as no other type. Inline
styles are allowed: Mantine and Plotly write them. Inline scripts are not, except our own, whose
hashes the policy names.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_INLINE_SCRIPT = re.compile(r"<script(?:\s+type=\"text/javascript\")?>(.*?)</script>", re.DOTALL)
_FIXED = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",  # for browsers without frame-ancestors
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def inline_script_hashes(html: str) -> list[str]:
    """Return the hashes of a trusted template's inline scripts, for the policy.

    Each is `'sha256-...'`.
    """
    return [
        f"'sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}'"
        for code in _INLINE_SCRIPT.findall(html)
    ]


def security_headers(script_hashes: Iterable[str]) -> dict[str, str]:
    """Return the headers of every answer.

    `script_hashes`: the inline scripts that may run.
    """
    policy = {
        "default-src": "'self'",
        "script-src": " ".join(("'self'", *sorted(script_hashes))),
        "style-src": "'self' 'unsafe-inline'",
        "img-src": "'self' data: blob:",
        "font-src": "'self' data:",
        "object-src": "'none'",
        "base-uri": "'none'",
        "form-action": "'self'",
        "frame-ancestors": "'none'",
    }
    return {
        "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        **_FIXED,
    }


def _is_private(scope: Scope) -> bool:
    """Return whether the API answers a signed-in browser: nothing of that stays in a cache."""
    is_of_api = scope["path"].startswith("/api/")
    return is_of_api and any(name == b"cookie" for name, _ in scope["headers"])


class SecurityHeaders:
    """Adds the headers to every answer.

    `script_hashes` only grows: the pages add theirs with the first answer.
    """

    def __init__(self, app: ASGIApp, script_hashes: set[str]) -> None:
        self._app = app
        self._script_hashes = script_hashes
        self._made: tuple[int, dict[str, str]] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_private = scope["type"] == "http" and _is_private(scope)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(self._headers())
                if is_private:
                    headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self._app(scope, receive, send_with_headers)

    def _headers(self) -> dict[str, str]:
        """Return the headers, made again only after a hash was added."""
        if self._made is None or self._made[0] != len(self._script_hashes):
            self._made = len(self._script_hashes), security_headers(self._script_hashes)
        return self._made[1]
