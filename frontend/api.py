"""Call the REST API from a page: in-process and as the visitor, without own credentials."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

import httpx
from dash.backends._fastapi import get_current_request

from maat.client import ApiError, AsyncClient, Unreachable

Scope = MutableMapping[str, Any]
Service = Callable[[Scope, Any, Any], Awaitable[None]]

# Headers of the callback's own message: the call in-process is another message.
ABOUT_THE_MESSAGE = frozenset(
    {
        "connection",
        "transfer-encoding",
        "te",
        "trailer",
        "upgrade",
        "expect",
        "range",
        "cache-control",
        "pragma",
    }
)
ABOUT_THE_MESSAGE_PREFIXES = ("content-", "accept", "if-", "idempotency-")
# Where the visitor's connection comes from and goes to: the service decides by it who is local.
OF_THE_CONNECTION = ("client", "server", "http_version", "scheme")

Failure = (ApiError, Unreachable)


class Api:
    """Calls the service in this process with the headers and the connection of the visitor."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def visitor(self) -> AsyncClient:
        """A client for the visitor of the running callback; use it as an async context manager."""
        return self.client_of(get_current_request().scope)

    def client_of(self, visit: Mapping[str, Any]) -> AsyncClient:
        """Return a client that the service takes for the sender of the request with this scope."""
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in visit["headers"]
        }
        connection = {name: visit[name] for name in OF_THE_CONNECTION if name in visit}

        async def service_for_visitor(scope: Scope, receive: Any, send: Any) -> None:
            await self._service({**scope, **connection}, receive, send)

        transport = httpx.ASGITransport(app=service_for_visitor, raise_app_exceptions=False)
        return AsyncClient(
            "http://maat",
            headers={name: headers[name] for name in headers if _is_about_the_visitor(name)},
            transport=transport,
        )


def _is_about_the_visitor(header: str) -> bool:
    return header not in ABOUT_THE_MESSAGE and not header.startswith(ABOUT_THE_MESSAGE_PREFIXES)


def error_message(error: Exception) -> tuple[str, str]:
    """A failure as a title and what to do about it."""
    if isinstance(error, ApiError):
        again = "Try again in a moment." if error.retryable else error.next_step
        trace = f"Request {error.request_id}." if error.status >= 500 and error.request_id else ""
        return error.title, " ".join(part for part in (error.detail, again, trace) if part)
    return "The service gives no answer", "It may be starting again; this page keeps trying."
