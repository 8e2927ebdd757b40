"""The named dependencies of routes: sessions, settings, queue."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Annotated

from fastapi import Depends, Request
from sqlmodel import Session

from backend.database import Database
from backend.queue import Queue
from backend.settings import Settings
from backend.web.middleware import SAFE_METHODS

Reading = Callable[[], AbstractContextManager[Session]]


async def get_session(request: Request) -> Session:
    """Return the session of one request: one transaction.

    It begins with its first statement, in the route's own thread, where in_one_thread.py ends it:
    before the answer is sent, so that no failed commit answers 200.
    """
    database: Database = request.app.state.database
    return database.session(writes=request.method not in SAFE_METHODS)


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
SessionDep = Annotated[Session, Depends(get_session)]
SettingsDep = Annotated[Settings, Depends(get_settings)]
QueueDep = Annotated[Queue, Depends(get_queue)]
