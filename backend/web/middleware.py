"""Guards every request, pages included: its id, its characters, and its origin.

Not who asks (accounts/identity.py), nor its body (bodies.py).
"""

from __future__ import annotations

import re
import secrets
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.asking import asked
from backend.problems import CrossSite, MalformedRequest, Problem
from backend.web.problem_responses import problem_response

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class RequestGuard:
    """Gives every request an id and refuses what no route should see.

    The caller's own id is used if it is plain.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket" and is_cross_site(Headers(scope=scope)):
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        await self._http(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
        scope.setdefault("state", {})["request_id"] = request_id

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["X-Request-Id"] = request_id
            await send(message)

        problem = self._objection(scope, headers)
        if problem is not None:
            answer = await self._answer(problem, Request(scope))
            await answer(scope, receive, send_with_id)
            return
        with asked(request_id):
            await self._app(scope, receive, send_with_id)

    async def _answer(self, problem: Problem, request: Request) -> Response:
        """Answer with the problem, or with a page where a browser asks for one."""
        page = getattr(request.app.state, "page_of_status", None)
        asks = request.method == "GET" and "text/html" in request.headers.get("accept", "")
        if page is None or not asks or request.url.path.startswith("/api/"):
            return problem_response(problem, request)
        answer: Response = await page(request, problem.status)
        return answer

    def _objection(self, scope: Scope, headers: Headers) -> Problem | None:
        if "\0" in scope["path"] or b"%00" in scope.get("query_string", b""):
            return MalformedRequest("The address holds a NUL character, which is not allowed.")
        if scope["method"] not in SAFE_METHODS and is_cross_site(headers):
            return CrossSite("A page of another site sent this request.")
        return None


def is_cross_site(headers: Headers) -> bool:
    """Return whether a browser reports that another site's page made this request.

    A bearer token is never sent automatically, so such a request is accepted.
    """
    if headers.get("authorization", "").lower().startswith("bearer "):
        return False
    if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        return True
    origin = headers.get("origin")
    return origin is not None and urlsplit(origin).netloc.lower() != headers.get("host", "").lower()
