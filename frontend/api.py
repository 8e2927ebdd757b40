"""The way from a page to the REST API: in-process, as the visitor. Holds no credentials of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx
from dash import ctx

from maat.client import ApiError, AsyncClient, Unreachable

# What makes the visitor who they are, where they came from, and what the service's origin checks read.
FORWARDED = (
    "authorization",
    "cookie",
    "host",
    "origin",
    "referer",
    "sec-fetch-site",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "forwarded",
)

Failure = (ApiError, Unreachable)


class Api:
    """Calls the service that runs in this process, with the credentials and the address of whoever triggered the callback."""

    def __init__(self, service: Any) -> None:
        self._service = service

    def visitor(self) -> AsyncClient:
        """A client for the visitor of the running callback; use it as an async context manager."""
        return self.client_of(dict(ctx.headers), ctx.remote)

    def client_of(self, headers: Mapping[str, str], remote: str | None) -> AsyncClient:
        """A client that speaks as whoever sent `headers` from `remote`."""
        given = {name.lower(): value for name, value in headers.items()}
        forwarded = {name: given[name] for name in FORWARDED if name in given}
        transport = httpx.ASGITransport(app=self._service, raise_app_exceptions=False, client=(remote or "", 0))
        return AsyncClient("http://maat", headers=forwarded, transport=transport)


def said(error: Exception) -> tuple[str, str]:
    """A failure as a title and what to do about it."""
    if isinstance(error, ApiError):
        again = "Try again in a moment." if error.retryable else ""
        trace = f"Request {error.request_id}." if error.status >= 500 and error.request_id else ""
        return error.title, " ".join(part for part in (error.detail, again, trace) if part)
    return "The service gives no answer", "It may be starting again; this page keeps trying."
