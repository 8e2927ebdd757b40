"""Log unexpected errors of callbacks with their traceback. Dash only answers them with a 500."""

from __future__ import annotations

import logging

from dash.exceptions import PreventUpdate
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

log = logging.getLogger(__name__)


class LoggedFailures:
    """Logs errors before the middleware of Dash swallows them.

    Logs neither headers nor body, because they hold tokens and people's files.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, send)
        except PreventUpdate:
            raise
        except Exception:
            if scope["type"] == "http" and scope["path"].startswith("/_dash-"):
                request = Request(scope)
                log.exception(
                    "%s %r failed (request %s)",
                    request.method,
                    request.url.path,
                    getattr(request.state, "request_id", ""),
                )
            raise
