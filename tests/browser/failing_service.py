"""Maat with faults: what matches the pattern in the file `failing` of its data folder gets 503."""

from __future__ import annotations

import os
import re
from pathlib import Path

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from frontend.app import create_app

FAILING = Path(os.environ["MAAT_DATA_DIR"], "failing")


def is_out(path: str) -> bool:
    return FAILING.exists() and re.search(FAILING.read_text(), path) is not None


class Faults:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and is_out(scope["path"]):
            problem = {"title": "Out for a moment", "status": 503, "retryable": True}
            await JSONResponse(problem, 503)(scope, receive, send)
            return
        await self._app(scope, receive, send)


app = create_app()
app.add_middleware(Faults)
