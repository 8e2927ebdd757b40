"""One open event stream: tells its reader what they may see, and ends when they may no longer."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from functools import partial

from fastapi import Request
from fastapi.sse import ServerSentEvent

from backend.accounts.identity import Principal
from backend.accounts.permissions import Permission
from backend.accounts.senders import Senders
from backend.database import Database
from backend.events.feed import Change, Feed, Position
from backend.events.hub import Batch, Subscription
from backend.problems import Problem, Unavailable
from backend.settings import Settings
from backend.shutdown import Shutdown
from backend.web.gates import Gates
from backend.web.problem_responses import DATABASE_AWAY

HEALTH = "health"
"""The topic of the service's health: told now and then, without ids."""


class Stream:
    """One open stream: what its reader may see of the batches of the hub.

    `brief`: of what happened together it tells at once which clusters it concerns, not each change.
    """

    def __init__(
        self,
        request: Request,
        feed: Feed,
        topics: frozenset[str],
        principal: Principal,
        batches: Subscription,
        *,
        brief: bool = False,
    ) -> None:
        self.position, self._brief = feed.position, brief
        self._request, self._feed, self._topics = request, feed, topics
        self._principal, self._batches = principal, batches
        self._settings: Settings = request.app.state.settings
        self._told_at = self._let_in_at = time.monotonic()

    async def told(self) -> AsyncIterator[ServerSentEvent]:
        """Tell the changes, until the service ends or the reader is let in no more."""
        async for event in self._catch_up():
            yield event
        while not self._batches.is_over:
            batch = await self._batches.next(self._patience())
            if not await self._is_let_in():
                yield ServerSentEvent(event="ended", data={"reason": "signed-out"})
                return
            events = [] if batch is None else self._of_batch(batch)
            for event in events:
                yield event
            if events:
                self._told_at = time.monotonic()
            elif self._quiet_seconds() >= self._settings.event_heartbeat_seconds:
                self._told_at = time.monotonic()
                yield ServerSentEvent(comment="alive")

    async def _catch_up(self) -> AsyncIterator[ServerSentEvent]:
        """Tell what happened before the hub's batches reached this stream."""
        shutdown: Shutdown = self._request.app.state.shutdown
        begun, feed = self._batches.begun, self._feed
        while True:
            changes = await self._news()
            events = self._events(changes, feed.position)
            self.position = feed.position
            for event in events:
                yield event
            if not changes and (
                feed.position.round_id >= begun.round_id
                and feed.position.job_event_id >= begun.job_event_id
            ):
                return
            if await shutdown.wait(self._settings.event_poll_seconds):
                return

    async def _news(self) -> list[Change]:
        """Return the changes of its own look; none if too many streams look at once."""
        gates: Gates = self._request.app.state.gates
        try:
            return await gates.streams.run(partial(_advance, self._database, self._feed))
        except Unavailable:
            return []

    def _of_batch(self, batch: Batch) -> list[ServerSentEvent]:
        """Return the events of a batch that the reader may see and has not been told."""
        told = [
            change
            for change in batch.changes
            if change.is_for(self._topics, self._principal) and change.is_after(self.position)
        ]
        events = self._events(told, batch.position)
        self.position = self.position.with_later(batch.position)
        if batch.health is not None and HEALTH in self._topics:
            events.append(ServerSentEvent(event=HEALTH, data=batch.health))
        return events

    def _events(self, told: Sequence[Change], version: Position) -> list[ServerSentEvent]:
        """Return the events of changes that were found together, and that they are all told.

        An event's id is behind what its stream has told already.
        """
        if not told:
            return []
        after = self.position.with_later(version)
        data: dict[str, object] = {"version": str(version)}
        if self._brief:
            data["changed"] = _changed(told)
        caught_up = ServerSentEvent(event="caught-up", data=data, id=str(after))
        return [*(() if self._brief else map(self._event, told)), caught_up]

    def _event(self, change: Change) -> ServerSentEvent:
        place = self.position.with_later(change.position)
        return ServerSentEvent(event=change.topic, data=change.data, id=str(place))

    async def _is_let_in(self) -> bool:
        """Look again, now and then, who asks; return whether they may still read this stream."""
        if time.monotonic() - self._let_in_at < self._settings.event_recheck_seconds:
            return True
        still = await _still_let_in(self._request, self._principal)
        if still is None:
            return False
        self._principal, self._let_in_at = still, time.monotonic()
        return True

    def _patience(self) -> float:
        """Return for how many seconds nothing but the next batch matters."""
        let_in = self._let_in_at + self._settings.event_recheck_seconds - time.monotonic()
        beat = self._settings.event_heartbeat_seconds - self._quiet_seconds()
        return max(min(let_in, beat), 0.001)

    def _quiet_seconds(self) -> float:
        return time.monotonic() - self._told_at

    @property
    def _database(self) -> Database:
        database: Database = self._request.app.state.database
        return database


def _changed(told: Sequence[Change]) -> dict[str, list[str]]:
    """Return the topics of changes, and of each the ids of the clusters that it concerns."""
    found: dict[str, dict[str, None]] = {}
    for change in told:
        clusters = found.setdefault(change.topic, {})
        if "cluster_id" in change.data:
            clusters[change.data["cluster_id"]] = None
    return {topic: list(clusters) for topic, clusters in found.items()}


async def _still_let_in(request: Request, before: Principal) -> Principal | None:
    """Return who asks, with what they may now; None if they may no longer read this stream.

    A token may have been revoked or expired, a session ended, a user deactivated. While the
    database does not answer, nothing changes: there are no news either.
    """
    try:
        senders: Senders = request.app.state.senders
        now = await senders.now(request)
    except (Unavailable, *DATABASE_AWAY):
        return before
    except Problem:
        return None
    return now if Permission.JOBS_READ in now.permissions else None


def _advance(database: Database, feed: Feed) -> list[Change]:
    with database.session_scope(writes=False) as session:
        return feed.advance(session)
