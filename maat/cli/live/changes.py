"""Tells when something has changed, by the service's event stream. Reads and draws nothing."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from maat.client import Client, Told

AGAIN_SECONDS = 2.0
_BEGUN = frozenset({"ready", "reset"})  # what happened before, no event tells


@dataclass(frozen=True)
class News:
    """What is to be done: read again, say that the service is away, or end with an error."""

    has_changed: bool = False
    away: str | None = None
    error: Exception | None = None


class Changes:
    """Follows the event stream in a thread of its own, and goes on after a break.

    `bell`: a file descriptor that can be read once there is news; `take` returns it.
    """

    def __init__(self, maat: Client, topics: Sequence[str], cluster_id: str | None = None) -> None:
        """`cluster_id`: only changes of this cluster; None for those of all."""
        self._maat, self._topics, self._cluster_id = maat, topics, cluster_id
        self._news: deque[News] = deque()
        self.bell, self._rope = os.pipe()
        self._has_changed = False
        threading.Thread(target=self._follow, name="events", daemon=True).start()

    def take(self) -> list[News]:
        """Return the news in order, without waiting."""
        os.read(self.bell, 4096)
        return [self._news.popleft() for _ in range(len(self._news))]

    def _follow(self) -> None:
        from maat.client import ApiError, Unreachable

        place: str | None = None
        while True:
            try:
                for told in self._maat.events(*self._topics, after=place):
                    place = told.place or place
                    self._hear(told)
                self._tell(News(away="The service has ended the stream; trying again."))
            except Unreachable:
                self._tell(News(away="The service does not answer; trying again."))
            except ApiError as error:
                if not error.retryable:
                    self._tell(News(error=error))
                    return
                self._tell(News(away=f"{error.detail} Trying again."))
            except Exception as error:  # the thread has nobody else who would see it
                self._tell(News(error=error))
                return
            time.sleep(AGAIN_SECONDS)

    def _hear(self, told: Told) -> None:
        """Tell of changes once all that happened together are told."""
        if told.kind in self._topics:
            of = told.data.get("cluster_id")
            self._has_changed |= self._cluster_id is None or of == self._cluster_id
        elif told.kind in _BEGUN or (told.kind == "caught-up" and self._has_changed):
            self._has_changed = False
            self._tell(News(has_changed=True))

    def _tell(self, news: News) -> None:
        self._news.append(news)
        os.write(self._rope, b"!")
