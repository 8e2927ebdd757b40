"""A clock that a test sets."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class HandClock:
    """Time that passes when a test says so."""

    time: float = 0.0

    def now(self) -> float:
        return self.time

    def sleep_until(self, time: float) -> None:
        self.time = max(self.time, time)
