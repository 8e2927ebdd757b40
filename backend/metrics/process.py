"""What this process knows of itself: connections, and how far its event streams are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import QueuePool

from backend.database import Database
from backend.events.feed import Feed


class ProcessFigures:
    """Connections to the database, and the event streams that are open."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._feeds: set[Feed] = set()

    @contextmanager
    def streaming(self, feed: Feed) -> Iterator[None]:
        """Count a stream while it is open."""
        self._feeds.add(feed)
        try:
            yield
        finally:
            self._feeds.discard(feed)

    @property
    def streams(self) -> int:
        return len(self._feeds)

    def lag(self, last_job_event: int) -> int:
        """Return by how many job events the slowest stream is behind; 0 without one."""
        behind = (last_job_event - feed.position.job_event_id for feed in list(self._feeds))
        return max((*behind, 0))

    def connections(self) -> dict[str, int]:
        """Return how many connections there may be, are in use, and are open but idle."""
        pool = self._database.engine.pool
        if not isinstance(pool, QueuePool):
            return {}
        return {"most": pool.size(), "in_use": pool.checkedout(), "idle": pool.checkedin()}
