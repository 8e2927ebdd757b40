"""Faults of Maat itself below /api: logged once, answered once. Let further out, the server would log them again and drop the connection."""

from __future__ import annotations

import logging

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.problems import InternalError
from backend.web.problem_responses import problem_response

log = logging.getLogger(__name__)


class Faults:
    """Stands inside the guards, which give an answer its headers. The pages' faults are the pages' own."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith("/api/"):
            await self._app(scope, receive, send)
            return
        started = False

        async def send_noting(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, send_noting)
        except Exception as error:
            request = Request(scope)
            log.error(
                "%s %r failed (request %s)",
                request.method,
                request.url.path,
                request.state.request_id,
                exc_info=error,
            )
            if started:
                raise BrokenOff from None
            problem = InternalError(
                "Maat met an error that it did not expect. The log has it under the request id."
            )
            await problem_response(problem, request)(scope, receive, send)


class BrokenOff(Exception):
    """An answer could not be finished: the connection ends, so that nobody takes it for whole."""
