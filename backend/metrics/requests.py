"""Counts and times the requests of this process, by route: never by address, which holds ids."""

from __future__ import annotations

import time
from functools import cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PREFIX = "/api/v1"
UNKNOWN = "unknown"
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class RequestFigures:
    """What is counted of requests, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._requests = Counter(
            "maat_http_requests",
            "Requests answered.",
            ("method", "route", "status"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "maat_http_request_seconds",
            "Seconds until an answer began. A stream's end is not awaited.",
            ("method", "route"),
            buckets=BUCKETS,
            registry=self.registry,
        )
        self._under_way = Gauge(
            "maat_http_requests_under_way",
            "Requests being answered, event streams among them.",
            registry=self.registry,
        )
        # Kept by route: a lookup by labels takes as long as the count itself, and routes are few.
        self._counter = cache(self._requests.labels)
        self._histogram = cache(self._seconds.labels)

    def begin(self) -> None:
        self._under_way.inc()

    def end(self) -> None:
        self._under_way.dec()

    def answered(self, method: str, route: str, *, status: int, seconds: float) -> None:
        self._counter(method, route, status).inc()
        self._histogram(method, route).observe(seconds)


class MeasuredRequests:
    """Middleware outside all others, so that refusals of the guards count too."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        figures: RequestFigures = scope["app"].state.metrics.requests
        began = time.perf_counter()

        async def send_measured(message: Message) -> None:
            if message["type"] == "http.response.start":
                seconds = time.perf_counter() - began
                method = scope["method"] if scope["method"] in _METHODS else "other"
                figures.answered(method, route_of(scope), status=message["status"], seconds=seconds)
            await send(message)

        figures.begin()
        try:
            await self._app(scope, receive, send_measured)
        finally:
            figures.end()


def route_of(scope: Scope) -> str:
    """Return the template of the route that answers; `unknown` if none does."""
    template = getattr(scope.get("route"), "path", None)
    if template is None:
        return UNKNOWN
    is_api = scope["path"].startswith(f"{PREFIX}/") and not template.startswith(PREFIX)
    return f"{PREFIX}{template}" if is_api else str(template)
