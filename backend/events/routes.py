"""The route of the event stream (SSE). What is told: feed.py."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent

from backend.accounts.identity import Principal, require
from backend.accounts.permissions import Permission
from backend.database import Database
from backend.events.feed import TOPICS, Change, Feed, Position, present_position
from backend.problems import FieldError, Invalid
from backend.settings import Settings
from backend.shutdown import Shutdown
from backend.web.strict_json import StrictRoute

router = APIRouter(tags=["events"], route_class=StrictRoute)

Reader = Annotated[Principal, Depends(require(Permission.JOBS_READ))]
LastEventId = Annotated[str | None, Header(alias="Last-Event-ID", max_length=100, description="Goes on behind this event.")]


def topics_of(
    topics: Annotated[str | None, Query(max_length=200, description="Of rounds, jobs, operations; all where absent.")] = None,
) -> frozenset[str]:
    wanted = frozenset(part.strip() for part in (topics or ",".join(TOPICS)).split(",") if part.strip())
    unknown = sorted(wanted - set(TOPICS))
    if unknown:
        message, remedy = "There is no such topic.", f"Use some of: {', '.join(TOPICS)}."
        raise Invalid(f"{message} {remedy}", errors=[FieldError("/topics", "unknown_topic", message, remedy, unknown[0])])
    return wanted


@router.get("/events", operation_id="streamEvents", response_class=EventSourceResponse)
async def stream_events(
    request: Request,
    principal: Reader,
    topics: Annotated[frozenset[str], Depends(topics_of)],
    last_event_id: LastEventId = None,
) -> AsyncIterator[ServerSentEvent]:
    """What changed, as it changes: `event` is the topic, `data` holds ids to fetch. Goes on after Last-Event-ID; otherwise begins now.

    `reset` says that the id was not one of this stream's: read everything anew.
    """
    database: Database = request.app.state.database
    settings: Settings = request.app.state.settings
    shutdown: Shutdown = request.app.state.shutdown
    begun_at = None if last_event_id is None else Position.parse(last_event_id)
    position = await asyncio.to_thread(_present, database) if begun_at is None else begun_at
    first = "ready" if last_event_id is None or begun_at is not None else "reset"
    yield ServerSentEvent(event=first, data={}, id=str(position), retry=2000)
    feed, quiet_seconds = Feed(position, topics, principal), 0.0
    while not await shutdown.wait(settings.event_poll_seconds):
        changes = await asyncio.to_thread(_advance, database, feed)
        for change in changes:
            yield ServerSentEvent(event=change.topic, data=change.data, id=str(change.position))
        quiet_seconds = 0.0 if changes else quiet_seconds + settings.event_poll_seconds
        if quiet_seconds >= settings.event_heartbeat_seconds:
            quiet_seconds = 0.0
            yield ServerSentEvent(comment="alive")


def _present(database: Database) -> Position:
    with database.session_scope(writes=False) as session:
        return present_position(session)


def _advance(database: Database, feed: Feed) -> list[Change]:
    with database.session_scope(writes=False) as session:
        return feed.advance(session)
