"""The route of the event stream (SSE). feed.py finds the changes, hub.py shares them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent

from backend.accounts.identity import Principal, require
from backend.accounts.permissions import Permission
from backend.database import Database
from backend.events.feed import TOPICS, Feed, Position, begin_at, present_position
from backend.events.hub import Hub
from backend.events.stream import HEALTH, Stream
from backend.metrics.service import Metrics
from backend.problems import FieldError, Invalid
from backend.web.gates import Gates
from backend.web.strict_json import StrictRoute

router = APIRouter(tags=["events"], route_class=StrictRoute)

Reader = Annotated[Principal, Depends(require(Permission.JOBS_READ))]
LastEventId = Annotated[
    str | None,
    Header(alias="Last-Event-ID", max_length=100, description="Resume after this event."),
]


async def topics_of(
    topics: Annotated[
        str | None,
        Query(
            max_length=200,
            description="Some of rounds, jobs, operations and health; default: the first three.",
        ),
    ] = None,
) -> frozenset[str]:
    wanted = frozenset(
        part.strip() for part in (topics or ",".join(TOPICS)).split(",") if part.strip()
    )
    unknown = sorted(wanted - {*TOPICS, HEALTH})
    if unknown:
        message, remedy = "There is no such topic.", f"Use some of: {', '.join([*TOPICS, HEALTH])}."
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
    brief: Annotated[
        bool,
        Query(description="Tell of changes that were found together at once, by `caught-up`."),
    ] = False,
) -> AsyncIterator[ServerSentEvent]:
    """Changes as they happen: `event` is the topic, `data` holds ids to fetch.

    Resumes after Last-Event-ID; otherwise begins now. `reset` means that the id is not of this
    stream: read everything again. `caught-up`: all changes so far are told; its `version` is equal
    in all streams that have told the same. With `brief` there is no event for each change, and
    `changed` of `caught-up` has the topics, and of each the ids of its clusters. `ended`: the token
    or session lets nobody in any more.
    """
    database: Database = request.app.state.database
    gates: Gates = request.app.state.gates
    hub: Hub = request.app.state.event_hub
    metrics: Metrics = request.app.state.metrics
    async with hub.subscribed(request.app.state.shutdown, request.app.state.health) as changes:
        position, first = await gates.streams.run(partial(_begin, database, last_event_id))
        yield ServerSentEvent(event=first, data={}, id=str(position), retry=2000)
        stream = Stream(
            request, Feed(position, topics, principal), topics, principal, changes, brief=brief
        )
        with metrics.process.streaming(stream):
            async for event in stream.told():
                yield event


def _begin(database: Database, last_event_id: str | None) -> tuple[Position, str]:
    """Return where the stream begins, and the name of its first event."""
    with database.session_scope(writes=False) as session:
        resumed = None if last_event_id is None else begin_at(session, last_event_id)
        first = "ready" if last_event_id is None or resumed is not None else "reset"
        return resumed or present_position(session), first
