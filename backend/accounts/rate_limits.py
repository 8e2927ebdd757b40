"""Limits how many requests a user may send: reads, changes and simulations, each by itself.

A bucket for each user and kind holds as many requests as a window allows, and fills up evenly. It
is counted in this process, since a count in the database would cost more than most reads: with
several API processes each counts for itself. The user who runs Maat is not limited, on its machine.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from backend.accounts.principals import Principal
from backend.problems import Problem
from backend.settings import Settings

_MOST_BUCKETS = 50_000
_MINUTE, _HOUR = 60.0, 3600.0
_ROUNDING = 1e-6  # seconds: who waits as long as told is served


class TooManyRequests(Problem):
    """You have sent too many requests."""

    remedy = "Wait as long as Retry-After says."
    slug, title, status = "too-many-requests", "Too many requests", 429
    retryable = True


class Kind(StrEnum):
    READS = "reads"
    CHANGES = "changes"
    SIMULATIONS = "simulations"


@dataclass(frozen=True)
class Limit:
    """At most `most` within `seconds`; 0: no limit."""

    most: int
    seconds: float

    def __str__(self) -> str:
        return f"{self.most} in {'a minute' if self.seconds == _MINUTE else 'an hour'}"


class RateLimits:
    """The buckets of one process.

    Of each, the moment is kept at which it is full again (the generic cell rate algorithm).
    """

    def __init__(self, settings: Settings, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = {
            Kind.READS: Limit(settings.reads_per_minute, _MINUTE),
            Kind.CHANGES: Limit(settings.changes_per_minute, _MINUTE),
            Kind.SIMULATIONS: Limit(settings.simulations_per_hour, _HOUR),
        }
        self._clock, self._lock = clock, threading.Lock()
        self._full_at: dict[tuple[str, Kind], float] = {}

    def take(self, principal: Principal, kind: Kind) -> None:
        """Take a request out of the user's bucket. Raises TooManyRequests if it is empty."""
        limit = self._limits[kind]
        if limit.most == 0 or principal.credential.kind == "local":
            return
        wait = self._taken((principal.user_id, kind), limit)
        if wait is not None:
            seconds = max(1, math.ceil(wait))
            raise TooManyRequests(
                f"{principal.user_name} has sent too many {kind.value}: {limit} are allowed. "
                f"Try again in {seconds} s.",
                headers={"Retry-After": str(seconds)},
            )

    def _taken(self, key: tuple[str, Kind], limit: Limit) -> float | None:
        """Return None, or after how many seconds there is room again."""
        each = limit.seconds / limit.most
        with self._lock:
            now = self._clock()
            full_at = max(self._full_at.get(key, now), now) + each
            if full_at - now > limit.seconds + _ROUNDING:
                return full_at - now - limit.seconds
            if len(self._full_at) >= _MOST_BUCKETS:
                self._full_at = {one: at for one, at in self._full_at.items() if at > now}
            self._full_at[key] = full_at
        return None
