"""The figures of one application: what it counts, and the database's, kept for some seconds."""

from __future__ import annotations

import logging
import threading
import time

from kombu.exceptions import OperationalError
from prometheus_client import CollectorRegistry, exposition
from sqlmodel import Session

from backend.database import Database
from backend.metrics.exposition import SnapshotCollector
from backend.metrics.process import ProcessFigures
from backend.metrics.requests import RequestFigures
from backend.metrics.snapshot import Snapshot, take_snapshot
from backend.queue import Queue
from backend.settings import Settings

log = logging.getLogger(__name__)


class Metrics:
    """Answers scrapes. Several within `metrics_seconds` read the database once."""

    def __init__(self, settings: Settings, database: Database, queue: Queue) -> None:
        self.requests = RequestFigures()
        self.process = ProcessFigures(database)
        self._keep_seconds, self._queue = settings.metrics_seconds, queue
        self._lock = threading.Lock()
        self._kept: tuple[float, Snapshot] | None = None

    def text(self, session: Session, accept: str) -> tuple[bytes, str]:
        """Return all figures and their media type, in the form that `accept` asks for."""
        encode, media_type = exposition.choose_encoder(accept)
        registry = CollectorRegistry()
        registry.register(SnapshotCollector(self._snapshot(session), self.process, self._waiting()))
        return _joined(encode(self.requests.registry), encode(registry)), media_type

    def _snapshot(self, session: Session) -> Snapshot:
        with self._lock:
            now = time.monotonic()
            if self._kept is None or now - self._kept[0] >= self._keep_seconds:
                self._kept = (now, take_snapshot(session))
            return self._kept[1]

    def _waiting(self) -> dict[str, int] | None:
        """Return the messages of every queue; None if the broker does not answer."""
        try:
            return dict(self._queue.waiting())
        except (OperationalError, OSError) as error:
            log.warning("the broker does not answer: %s", type(error).__name__)
            return None


def _joined(first: bytes, second: bytes) -> bytes:
    """Join two expositions. That of OpenMetrics ends with a mark, which may stand only once."""
    return first.removesuffix(b"# EOF\n") + second
