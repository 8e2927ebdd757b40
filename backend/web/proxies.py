"""Believes what a proxy says of a request's address and scheme if the operator named the proxy."""

from __future__ import annotations

from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

PLAIN = {"https": "http", "wss": "ws"}


class TrustedProxies:
    """Takes X-Forwarded-For and X-Forwarded-Proto from these proxies, and from nobody else.

    `proxies`: addresses or networks, separated by commas. A server that was started without
    `--no-proxy-headers` has believed the scheme already: from others it counts as plain http.
    """

    def __init__(self, app: ASGIApp, proxies: str) -> None:
        self._app = app
        asgi: Any = app  # uvicorn's types of ASGI are not starlette's
        self._believing: Any = ProxyHeadersMiddleware(asgi, trusted_hosts=proxies)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        client = scope.get("client")
        if client is not None and client[0] in self._believing.trusted_hosts:
            await self._believing(scope, receive, send)
            return
        if "x-forwarded-proto" in Headers(scope=scope):
            scope["scheme"] = PLAIN.get(scope["scheme"], scope["scheme"])
        await self._app(scope, receive, send)
