"""A profile: steps at several batch sizes for a short while, of which only the times are kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from maat.agent.environment import BatchPlan

_ENOUGH_STEPS = 31  # at one size; the first is not timed


class Profile:
    """Says at which batch size to step, and when it is over.

    Every size gets its share of the time that is left; one whose steps are many before moves on. No
    step begins that would take too long, as the last one tells; but two are always made, since the
    first is not timed.
    """

    def __init__(
        self,
        seconds: float,
        batch_sizes: Sequence[int],
        *,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seconds, self._sizes, self._now = seconds, list(batch_sizes), now
        self._began: float | None = None
        self._at, self._steps, self._until = 0, 0, 0.0
        self._ended, self._last_seconds, self._last_size = 0.0, 0.0, 1
        self._is_timed = False

    @classmethod
    def from_json(cls, data: Mapping[str, Any], *, most: int) -> Profile:
        """Read a profile of spec.json; `most`: the largest batch size that the script allows."""
        sizes = [int(size) for size in data["batch_sizes"] if size <= most]
        return cls(float(data["seconds"]), sizes or [most])

    def of_one_size(self, size: int) -> Profile:
        """Return one that steps at this batch size alone, for as long."""
        return Profile(self._seconds, [size], now=self._now)

    @property
    def plan(self) -> BatchPlan:
        size = self._sizes[min(self._at, len(self._sizes) - 1)]
        return BatchPlan(self._at + 1, size, size, 0)

    @property
    def is_over(self) -> bool:
        growth = max(self.plan.total / self._last_size, 1.0)
        expected = self._last_seconds * growth if self._is_timed else 0.0
        return self._at >= len(self._sizes) or self.stepping_seconds + expected >= self._seconds

    @property
    def stepping_seconds(self) -> float:
        """Return the time from the first step on."""
        return 0.0 if self._began is None else self._now() - self._began

    def begin(self) -> None:
        """Let the time run, from the first call on."""
        if self._began is None:
            self._began = self._ended = self._now()
            self._set_until()

    def end_step(self) -> None:
        """Count a step; go on to the next size if this one has had enough."""
        self._steps += 1
        now = self._now()
        self._last_seconds, self._last_size = now - self._ended, self.plan.total
        self._ended, self._is_timed = now, self._is_timed or self._steps > 1
        if self._steps >= _ENOUGH_STEPS or (self._steps > 1 and now >= self._until):
            self._at, self._steps = self._at + 1, 0
            self._set_until()

    def _set_until(self) -> None:
        left = max(len(self._sizes) - self._at, 1)
        self._until = self._now() + (self._seconds - self.stepping_seconds) / left
