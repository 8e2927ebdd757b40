"""Looks for changes once for all event streams of this process, and hands them to each stream.

Looks only while a stream is open, so that more readers cost the database nothing more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from backend.database import Database
from backend.events.feed import EVERYTHING, Change, Feed, Position, present_position
from backend.health.monitor import HealthMonitor
from backend.problems import Unavailable
from backend.settings import Settings
from backend.shutdown import Shutdown
from backend.web.gates import Gates
from backend.web.problem_responses import DATABASE_AWAY
from maat.api.service import HealthOut

_MOST_WAITING = 200  # batches: a reader that takes none for so long begins again
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Batch:
    """What one look found: the changes and the position after them, or the service's health."""

    changes: Sequence[Change]
    position: Position
    health: HealthOut | None = None


@dataclass(eq=False)
class Subscription:
    """The batches that one stream has not told yet. `begun`: what came later is in them."""

    begun: Position
    waiting: asyncio.Queue[Batch] = field(default_factory=lambda: asyncio.Queue(_MOST_WAITING))
    is_over: bool = False

    async def next(self, seconds: float) -> Batch | None:
        """Return the next batch; None if none comes within `seconds`, or the service ends."""
        try:
            async with asyncio.timeout(seconds):
                return await self.waiting.get()
        except TimeoutError:
            return None

    def put(self, batch: Batch) -> None:
        try:
            self.waiting.put_nowait(batch)
        except asyncio.QueueFull:
            self.is_over = True


class Hub:
    """Looks every `event_poll_seconds`, and at the health every `event_heartbeat_seconds`."""

    def __init__(self, settings: Settings, database: Database, gates: Gates) -> None:
        self._settings, self._database, self._gates = settings, database, gates
        self._subscriptions: set[Subscription] = set()
        self._feed: Feed | None = None
        self._looking: asyncio.Task[None] | None = None
        self._begins = asyncio.Lock()

    @asynccontextmanager
    async def subscribed(
        self, shutdown: Shutdown, monitor: HealthMonitor
    ) -> AsyncIterator[Subscription]:
        """Receive every batch from now on. Raises Unavailable, and the database's errors."""
        async with self._begins:
            if self._feed is None:
                position = await self._gates.streams.run(self._present)
                self._feed = Feed(position, EVERYTHING, None)
                self._looking = asyncio.create_task(self._look(self._feed, shutdown, monitor))
            subscription = Subscription(self._feed.position)
            self._subscriptions.add(subscription)
        try:
            yield subscription
        finally:
            self._subscriptions.discard(subscription)

    async def _look(self, feed: Feed, shutdown: Shutdown, monitor: HealthMonitor) -> None:
        """Look until no stream is open, or the service ends."""
        checked_ago = self._settings.event_heartbeat_seconds
        try:
            while self._subscriptions or self._begins.locked():
                changes = await self._news(feed)
                health = None
                if checked_ago >= self._settings.event_heartbeat_seconds:
                    checked_ago, health = 0.0, await _health(monitor)
                if changes or health is not None:
                    batch = Batch(changes, feed.position, health)
                    for subscription in list(self._subscriptions):
                        subscription.put(batch)
                if await shutdown.wait(self._settings.event_poll_seconds):
                    return
                checked_ago += self._settings.event_poll_seconds
        finally:
            self._feed = None
            for subscription in self._subscriptions:
                subscription.is_over = True
                subscription.put(Batch((), feed.position))  # wakes streams that wait for a batch

    async def _news(self, feed: Feed) -> list[Change]:
        """Return the changes; none while the database does not answer. The next look finds them."""
        try:
            return await self._gates.streams.run(lambda: self._advance(feed))
        except Unavailable:
            return []
        except DATABASE_AWAY as error:
            log.warning("events: the database does not answer: %s", type(error).__name__)
            return []

    def _present(self) -> Position:
        with self._database.session_scope(writes=False) as session:
            return present_position(session)

    def _advance(self, feed: Feed) -> list[Change]:
        with self._database.session_scope(writes=False) as session:
            return feed.advance(session)


async def _health(monitor: HealthMonitor) -> HealthOut | None:
    try:
        return await monitor.look()
    except (Unavailable, *DATABASE_AWAY):
        return None
