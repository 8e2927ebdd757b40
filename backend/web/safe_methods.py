"""HEAD on every GET address, and 304 for a reader that already has the answer.

Calls the application with GET and cuts its answer.
"""

from __future__ import annotations

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.web.conditional import is_known

_OF_CONTENT = ("content-length", "content-type", "content-encoding")


class SafeMethods:
    """Middleware outside the routes: HEAD gets the same answer and headers as GET."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
            await self._app(scope, receive, send)
            return
        known = Headers(scope=scope).get("if-none-match")
        if scope["method"] == "GET" and known is None:
            await self._app(scope, receive, send)
            return
        answer = _WithoutContent(scope["method"] == "HEAD", known, receive, send)
        await self._app({**scope, "method": "GET"}, answer.receive, answer.send)


class _WithoutContent:
    """An answer cut after its headers: always for HEAD, for GET if the reader has it."""

    def __init__(self, head: bool, known: str | None, receive: Receive, send: Send) -> None:
        self._cut, self._known_tags, self._receive, self._send = head, known, receive, send
        self._ended = False

    async def receive(self) -> Message:
        """Tell an endless answer (a stream) that the client has disconnected."""
        return {"type": "http.disconnect"} if self._ended else await self._receive()

    async def send(self, message: Message) -> None:
        if self._ended:
            return
        if message["type"] == "http.response.start":
            await self._start(message)
        elif not self._cut:
            await self._send(message)

    async def _start(self, message: Message) -> None:
        headers = MutableHeaders(scope=message)
        tag = headers.get("etag")
        if (
            self._known_tags is not None
            and message["status"] == 200
            and tag is not None
            and is_known(self._known_tags, tag)
        ):
            for name in _OF_CONTENT:
                del headers[name]
            message, self._cut = {**message, "status": 304}, True
        await self._send(message)
        if self._cut:
            self._ended = True
            await self._send({"type": "http.response.body", "body": b""})
