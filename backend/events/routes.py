"""The route of the event stream (SSE). feed.py finds the changes."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent

from backend.accounts.identity import Principal, identified, require
from backend.accounts.permissions import Permission
from backend.database import Database
from backend.events.feed import TOPICS, Change, Feed, Position, begin_at, present_position
from backend.metrics.service import Metrics
from backend.problems import FieldError, Invalid, Problem, Unavailable
from backend.settings import Settings
from backend.shutdown import Shutdown
from backend.web.gates import Gates
from backend.web.problem_responses import DATABASE_AWAY
from backend.web.strict_json import StrictRoute

router = APIRouter(tags=["events"], route_class=StrictRoute)

Reader = Annotated[Principal, Depends(require(Permission.JOBS_READ))]
LastEventId = Annotated[
    str | None,
    Header(alias="Last-Event-ID", max_length=100, description="Resume after this event."),
]


def topics_of(
    topics: Annotated[
        str | None,
        Query(max_length=200, description="Some of rounds, jobs, operations; default: all."),
    ] = None,
) -> frozenset[str]:
    wanted = frozenset(
        part.strip() for part in (topics or ",".join(TOPICS)).split(",") if part.strip()
    )
    unknown = sorted(wanted - set(TOPICS))
    if unknown:
        message, remedy = "There is no such topic.", f"Use some of: {', '.join(TOPICS)}."
        raise Invalid(
            f"{message} {remedy}",
            errors=[FieldError("/topics", "unknown_topic", message, remedy, unknown[0])],
        )
    return wanted


@router.get("/events", operation_id="streamEvents", response_class=EventSourceResponse)
async def stream_events(
    request: Request,
    principal: Reader,
    topics: Annotated[frozenset[str], Depends(topics_of)],
    last_event_id: LastEventId = None,
) -> AsyncIterator[ServerSentEvent]:
    """Changes as they happen: `event` is the topic, `data` holds ids to fetch.

    Resumes after Last-Event-ID; otherwise begins now. `reset` means that the id is not of this
    stream: read everything again. `ended`: the token or session lets nobody in any more.
    """
    database: Database = request.app.state.database
    gates: Gates = request.app.state.gates
    position, first = await gates.streams.run(partial(_begin, database, last_event_id))
    yield ServerSentEvent(event=first, data={}, id=str(position), retry=2000)
    feed = Feed(position, topics, principal)
    metrics: Metrics = request.app.state.metrics
    with metrics.process.streaming(feed):
        async for event in _told(request, feed):
            yield event


async def _told(request: Request, feed: Feed) -> AsyncIterator[ServerSentEvent]:
    """Tell the changes as they happen, until the service ends or the reader is let in no more."""
    database: Database = request.app.state.database
    settings: Settings = request.app.state.settings
    shutdown: Shutdown = request.app.state.shutdown
    gates: Gates = request.app.state.gates
    quiet_seconds = 0.0
    let_in_at = time.monotonic()
    while not await shutdown.wait(settings.event_poll_seconds):
        if time.monotonic() - let_in_at >= settings.event_recheck_seconds:
            still = await _still_let_in(request, feed.principal)
            if still is None:
                yield ServerSentEvent(event="ended", data={"reason": "signed-out"})
                return
            feed.principal, let_in_at = still, time.monotonic()
        changes = await _news(gates, database, feed)
        for change in changes:
            yield ServerSentEvent(event=change.topic, data=change.data, id=str(change.position))
        quiet_seconds = 0.0 if changes else quiet_seconds + settings.event_poll_seconds
        if quiet_seconds >= settings.event_heartbeat_seconds:
            quiet_seconds = 0.0
            yield ServerSentEvent(comment="alive")


async def _still_let_in(request: Request, before: Principal) -> Principal | None:
    """Return who asks, with what they may now; None if they may no longer read this stream.

    A token may have been revoked or expired, a session ended, a user deactivated. While the
    database does not answer, nothing changes: there are no news either.
    """
    try:
        now = await identified(request)
    except (Unavailable, *DATABASE_AWAY):
        return before
    except Problem:
        return None
    return now if Permission.JOBS_READ in now.permissions else None


async def _news(gates: Gates, database: Database, feed: Feed) -> list[Change]:
    """Return the changes; none if too many streams look at once.

    The next look finds them.
    """
    try:
        return await gates.streams.run(partial(_advance, database, feed))
    except Unavailable:
        return []


def _begin(database: Database, last_event_id: str | None) -> tuple[Position, str]:
    """Return where the stream begins, and the name of its first event."""
    with database.session_scope(writes=False) as session:
        resumed = None if last_event_id is None else begin_at(session, last_event_id)
        first = "ready" if last_event_id is None or resumed is not None else "reset"
        return resumed or present_position(session), first


def _advance(database: Database, feed: Feed) -> list[Change]:
    with database.session_scope(writes=False) as session:
        return feed.advance(session)
