"""Handles faults of Maat below /api: logs and answers each once.

Otherwise the server would log them again and drop the connection.
"""

from __future__ import annotations

import logging

from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.problems import InternalError
from backend.web.problem_responses import problem_response

log = logging.getLogger(__name__)


class Faults:
    """Middleware inside the guards, which add headers to its answers.

    The pages handle their own faults.
    """

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
        except ClientDisconnect:
            log.info("%s %r: the client hung up", scope["method"], scope["path"])
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
                "Maat met an unexpected error. The log has it under the request id."
            )
            await problem_response(problem, request)(scope, receive, send)


class BrokenOff(Exception):
    """An answer could not be finished: closing the connection marks it as incomplete."""
