"""The end of /api: what no route answers gets a problem, 405 where only the method is wrong. Stands before the pages' catch-all."""

from __future__ import annotations

from collections.abc import Iterable

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Scope

from backend.problems import MethodNotAllowed, NotFound
from backend.web.problem_responses import problem_response

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")


def install_fallback(app: FastAPI) -> None:
    for path in ("/api", "/api/{rest:path}"):
        app.router.routes.append(Route(path, _answer, methods=list(_METHODS), include_in_schema=False))


async def _answer(request: Request) -> JSONResponse:
    allowed = sorted(_allowed(request.app.routes, request.scope))
    if allowed:
        detail = f"{request.url.path} takes {', '.join(allowed)}, not {request.method}."
        return problem_response(MethodNotAllowed(detail, headers={"Allow": ", ".join(allowed)}), request)
    return problem_response(NotFound(f"There is nothing at {request.url.path}. /docs lists what there is."), request)


def _allowed(routes: Iterable[BaseRoute], scope: Scope) -> set[str]:
    """Methods that some other route takes at this path."""
    found = set()
    for method in _METHODS:
        for route in routes:
            if getattr(route, "endpoint", None) is not _answer and route.matches({**scope, "method": method})[0] is Match.FULL:
                if getattr(route, "path", "").startswith("/api"):
                    found.add(method)
    return found
