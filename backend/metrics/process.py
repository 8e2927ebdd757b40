"""What this process knows of itself: connections, and how far its event streams are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from sqlalchemy import QueuePool

from backend.database import Database
from backend.events.feed import Position


class Streaming(Protocol):
    """An open event stream."""

    position: Position


class ProcessFigures:
    """Connections to the database, and the event streams that are open."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._streams: set[Streaming] = set()

    @contextmanager
    def streaming(self, stream: Streaming) -> Iterator[None]:
        """Count a stream while it is open."""
        self._streams.add(stream)
        try:
            yield
        finally:
            self._streams.discard(stream)

    @property
    def streams(self) -> int:
        return len(self._streams)

    def lag(self, last_job_event: int) -> int:
        """Return by how many job events the slowest stream is behind; 0 without one."""
        behind = (last_job_event - stream.position.job_event_id for stream in list(self._streams))
        return max((*behind, 0))

    def connections(self) -> dict[str, int]:
        """Return how many connections there may be, are in use, and are open but idle."""
        pool = self._database.engine.pool
        if not isinstance(pool, QueuePool):
            return {}
        return {"most": pool.size(), "in_use": pool.checkedout(), "idle": pool.checkedin()}
