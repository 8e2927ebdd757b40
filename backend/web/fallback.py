"""Answers paths below /api that no route serves.

405 if only the method is wrong, otherwise 404. It comes before the pages' catch-all.
"""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Scope

from backend.problems import MethodNotAllowed, NotFound
from backend.web.problem_responses import problem_response

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")


def install_fallback(app: FastAPI) -> None:
    """Answer every path below /api that no route added so far serves."""
    served = tuple(app.router.routes)

    async def answer(request: Request) -> JSONResponse:
        allowed = ", ".join(_allowed(served, request.scope))
        if allowed:
            detail = f"{request.url.path} accepts {allowed}, not {request.method}."
            return problem_response(MethodNotAllowed(detail, headers={"Allow": allowed}), request)
        return problem_response(
            NotFound(f"There is nothing at {request.url.path}. /docs lists every address."),
            request,
        )

    for path in ("/api", "/api/{rest:path}"):
        app.router.routes.append(
            Route(path, answer, methods=list(_METHODS), include_in_schema=False)
        )


def _allowed(routes: Sequence[BaseRoute], scope: Scope) -> list[str]:
    """Return the methods that some route accepts at this path.

    GET implies HEAD (safe_methods.py).
    """
    taken = {
        method
        for method in _METHODS
        if any(route.matches({**scope, "method": method})[0] is Match.FULL for route in routes)
    }
    return [
        method for method in _METHODS if method in taken or (method == "HEAD" and "GET" in taken)
    ]
