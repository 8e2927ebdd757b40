"""The named dependencies of routes: sessions, settings, queue."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Annotated

import anyio
import anyio.to_thread
from fastapi import Depends, Request
from sqlmodel import Session

from backend.database import Database, has_ended
from backend.queue import Queue
from backend.settings import Settings
from backend.web.middleware import SAFE_METHODS

Reading = Callable[[], AbstractContextManager[Session]]


async def get_session(request: Request) -> AsyncIterator[Session]:
    """Open one transaction for one request.

    Scope "function" commits before the answer is sent, so that no failed commit answers 200. The
    transaction begins with its first statement, in the route's own thread: the event loop waits for
    nothing.
    """
    database: Database = request.app.state.database
    scope = database.session_scope(writes=request.method not in SAFE_METHODS)
    session = scope.__enter__()
    try:
        yield session
    except BaseException as error:
        await _in_thread(partial(scope.__exit__, type(error), error, error.__traceback__))
        raise
    if has_ended(session):  # by in_one_thread.py: nothing is left that would wait
        scope.__exit__(None, None, None)
    else:
        await _in_thread(partial(scope.__exit__, None, None, None))


async def _in_thread(end: Callable[[], object]) -> None:
    """End the transaction in a thread, even if the client has disconnected."""
    with anyio.CancelScope(shield=True):
        await anyio.to_thread.run_sync(end)


async def get_reading(request: Request) -> Reading:
    """Return a function that opens a read-only transaction.

    It serves slow work before a request writes. Close it before the first write.
    """
    database: Database = request.app.state.database
    return partial(database.session_scope, writes=False)


async def get_database(request: Request) -> Database:
    database: Database = request.app.state.database
    return database


async def get_settings(request: Request) -> Settings:
    settings: Settings = request.app.state.settings
    return settings


async def get_queue(request: Request) -> Queue:
    queue: Queue = request.app.state.queue
    return queue


DatabaseDep = Annotated[Database, Depends(get_database)]
ReadingDep = Annotated[Reading, Depends(get_reading)]
SessionDep = Annotated[Session, Depends(get_session, scope="function")]
SettingsDep = Annotated[Settings, Depends(get_settings)]
QueueDep = Annotated[Queue, Depends(get_queue)]
