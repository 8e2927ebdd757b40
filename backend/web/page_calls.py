"""What guards the pages' callbacks: that a call is one, and that no rebound name makes it the local admin's. Not the pages' own errors."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from backend.accounts.identity import is_rebound
from backend.problems import MalformedRequest, Problem, Unauthenticated
from backend.web.problem_responses import problem_response

PATH = "/_dash-update-component"


class PageCallGuard:
    """Stands inside the middleware of the pages, which reads the body before and leaves its JSON in the request's state."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "POST" and scope["path"] == PATH:
            request = Request(scope)
            problem = _objection(request)
            if problem is not None:
                await problem_response(problem, request)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _objection(request: Request) -> Problem | None:
    if is_rebound(request):
        return Unauthenticated("The Host header names another machine than this one. Open Maat by its own address, or send a token.")
    if hasattr(request.state, "json_body") and not _is_call(request.state.json_body):
        return MalformedRequest("The body is no callback of a page: it is a JSON object with output, outputs, inputs and changedPropIds.")
    return None


def _is_call(body: Any) -> bool:
    if not isinstance(body, dict) or not isinstance(body.get("output"), str):
        return False
    lists = (body.get("inputs", []), body.get("state", []), body.get("changedPropIds", []))
    return "outputs" in body and all(isinstance(entries, list) for entries in lists)
