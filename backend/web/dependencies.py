"""The named dependencies of routes: a session that is one transaction, one that only reads, the settings, the queue."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Annotated

import anyio
import anyio.to_thread
from fastapi import Depends, Request
from sqlmodel import Session

from backend.database import Database
from backend.queue import Queue
from backend.settings import Settings
from backend.web.middleware import SAFE_METHODS

Reading = Callable[[], AbstractContextManager[Session]]


async def get_session(request: Request) -> AsyncIterator[Session]:
    """One request, one transaction. Scope "function": it is committed before the answer is sent, so that no failed commit answers 200.

    It begins with its first statement, in the route's own thread: nothing of it waits on the event loop.
    """
    database: Database = request.app.state.database
    scope = database.session_scope(writes=request.method not in SAFE_METHODS)
    session = scope.__enter__()
    try:
        yield session
    except BaseException as error:
        await _in_thread(partial(scope.__exit__, type(error), error, error.__traceback__))
        raise
    await _in_thread(partial(scope.__exit__, None, None, None))


async def _in_thread(end: Callable[[], object]) -> None:
    """A transaction is ended, whether or not somebody still waits for the answer."""
    with anyio.CancelScope(shield=True):
        await anyio.to_thread.run_sync(end)


async def get_reading(request: Request) -> Reading:
    """Opens a transaction that only reads, for what takes time before a request writes. Close it before the first write."""
    database: Database = request.app.state.database
    return partial(database.session_scope, writes=False)


async def get_settings(request: Request) -> Settings:
    settings: Settings = request.app.state.settings
    return settings


async def get_queue(request: Request) -> Queue:
    queue: Queue = request.app.state.queue
    return queue


ReadingDep = Annotated[Reading, Depends(get_reading)]
SessionDep = Annotated[Session, Depends(get_session, scope="function")]
SettingsDep = Annotated[Settings, Depends(get_settings)]
QueueDep = Annotated[Queue, Depends(get_queue)]
