"""Ends a request whose client has gone, so that nobody computes what nobody reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import anyio.from_thread
from fastapi import Depends, Request
from starlette.requests import ClientDisconnect


async def still_there(request: Request) -> Callable[[], None]:
    """Return what a request that takes long calls between its steps, from its thread.

    It raises ClientDisconnect once the client has closed the connection: nothing is stored.
    """

    def look() -> None:
        if anyio.from_thread.run(request.is_disconnected):
            raise ClientDisconnect

    return look


StillThere = Annotated[Callable[[], None], Depends(still_there)]
