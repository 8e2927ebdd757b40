"""The scripts of the page libraries, compressed once and away from the event loop."""

from __future__ import annotations

import asyncio
import gzip
from dataclasses import dataclass

from dash.fingerprint import check_fingerprint
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PREFIX = "/_dash-component-suites/"
LEVEL = 6


@dataclass(frozen=True, slots=True)
class _Stored:
    headers: list[tuple[bytes, bytes]]
    body: bytes


class CompressedSuites:
    """Answers scripts gzipped from memory; compresses each in a thread the first time.

    The key is the script's name without its fingerprint: invented fingerprints fill no memory.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._stored: dict[str, _Stored] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (
            scope["type"] != "http"
            or scope["method"] != "GET"
            or not scope["path"].startswith(PREFIX)
            or not _takes_gzip(scope)
        ):
            await self.app(scope, receive, send)
            return
        name, fingerprinted = check_fingerprint(scope["path"])  # type: ignore[no-untyped-call]
        if not fingerprinted:
            await self.app(scope, receive, send)
            return
        if name not in self._stored:
            status, headers, body = await self._asked(scope, receive)
            if status != 200:
                await send({"type": "http.response.start", "status": status, "headers": headers})
                await send({"type": "http.response.body", "body": body})
                return
            self._stored[name] = await _compressed(headers, body)
        stored = self._stored[name]
        await send({"type": "http.response.start", "status": 200, "headers": stored.headers})
        await send({"type": "http.response.body", "body": stored.body})

    async def _asked(
        self, scope: Scope, receive: Receive
    ) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        """What the application answers when it is not asked to compress."""
        plain = {
            **scope,
            "headers": [
                (name, value) for name, value in scope["headers"] if name != b"accept-encoding"
            ],
        }
        start: Message = {}
        parts: list[bytes] = []

        async def keep(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
            else:
                parts.append(message.get("body", b""))

        await self.app(plain, receive, keep)
        return int(start["status"]), list(start["headers"]), b"".join(parts)


async def _compressed(headers: list[tuple[bytes, bytes]], body: bytes) -> _Stored:
    small = await asyncio.to_thread(gzip.compress, body, LEVEL, mtime=0)
    changed = MutableHeaders(raw=list(headers))
    changed["Content-Encoding"] = "gzip"
    changed["Content-Length"] = str(len(small))
    changed["Vary"] = "Accept-Encoding"
    return _Stored(changed.raw, small)


def _takes_gzip(scope: Scope) -> bool:
    return "gzip" in Headers(scope=scope).get("accept-encoding", "")
