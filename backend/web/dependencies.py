"""The named dependencies of routes: a session that is one transaction, the settings, the queue."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from fastapi import Depends, Request
from sqlmodel import Session

from backend.database import Database
from backend.queue import Queue
from backend.settings import Settings
from backend.web.middleware import SAFE_METHODS


def get_session(request: Request) -> Iterator[Session]:
    """One request, one transaction. Scope "function": it is committed before the answer is sent, so that no failed commit answers 200."""
    database: Database = request.app.state.database
    with database.session_scope(writes=request.method not in SAFE_METHODS) as session:
        yield session


def get_settings(request: Request) -> Settings:
    settings: Settings = request.app.state.settings
    return settings


def get_queue(request: Request) -> Queue:
    queue: Queue = request.app.state.queue
    return queue


SessionDep = Annotated[Session, Depends(get_session, scope="function")]
SettingsDep = Annotated[Settings, Depends(get_settings)]
QueueDep = Annotated[Queue, Depends(get_queue)]
