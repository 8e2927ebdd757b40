"""Times of steps, and how seldom to measure so that measuring costs next to nothing."""

from __future__ import annotations

import math
import statistics
import time
from collections import deque
from dataclasses import dataclass
from typing import Any

import torch

MEASURED_SHARE = 0.0025
"""The most of a step's time that measuring may take, over many steps.

A step that follows pays as well, since the measurement took its memory and its caches: little of
that is seen.
"""

MOST_EVERY = 200
TRUSTED_AFTER = 10
"""Measurements before the noise scale says anything: the norm of one gradient says little."""

_MOST_EVERY_AT_FIRST = 40  # until then
_FIRST = 3
_LONGEST_MEMORY = 50


@dataclass
class Times:
    """Times of so many steps: their mean, the squares about it, and the mean exposed wait."""

    steps: int = 0
    mean: float = 0.0
    m2: float = 0.0
    sync: float = 0.0
    synced: int = 0

    def add(self, seconds: float) -> None:
        self.steps += 1
        apart = seconds - self.mean
        self.mean += apart / self.steps
        self.m2 += apart * (seconds - self.mean)

    def add_sync(self, seconds: float) -> None:
        self.synced += 1
        self.sync += (seconds - self.sync) / self.synced


class Mean:
    """A mean that forgets: the newest of some 50 values count."""

    def __init__(self) -> None:
        self.count, self.value = 0, 0.0

    def add(self, value: float) -> None:
        self.count += 1
        self.value += (value - self.value) / min(self.count, _LONGEST_MEMORY)


class Budget:
    """Says at which steps to measure: at every k-th, by what measuring was seen to cost.

    A step's time is the median of the newest ones. Where a GPU computes behind the script's back,
    the script runs ahead after each wait for it: the shortest steps are none.
    """

    def __init__(self) -> None:
        self._steps: deque[float] = deque(maxlen=_LONGEST_MEMORY)
        self._cost = Mean()

    def add_step(self, seconds: float) -> None:
        self._steps.append(seconds)

    def add_cost(self, seconds: float) -> None:
        """Add what one measurement took, with all steps that it needs."""
        self._cost.add(seconds)

    @property
    def every(self) -> int:
        """Return k. The first few steps are all measured, to know what it costs."""
        if min(self._cost.count, len(self._steps)) < _FIRST:
            return 1
        seconds = max(statistics.median(self._steps), 1e-9)
        every = math.ceil(self._cost.value / (MEASURED_SHARE * seconds))
        is_early = self._cost.count < TRUSTED_AFTER
        return min(max(every, 1), MOST_EVERY, _MOST_EVERY_AT_FIRST if is_early else MOST_EVERY)


class Moments:
    """Points in time of a device, whose distances are read later without holding the device up."""

    def __init__(self, device: torch.device) -> None:
        self._is_cuda = device.type == "cuda"

    def now(self) -> Any:
        if not self._is_cuda:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def is_past(self, moment: Any) -> bool:
        """Return whether the device has passed a point, without waiting for it."""
        return isinstance(moment, float) or bool(moment.query())

    def seconds(self, start: Any, end: Any) -> float:
        """Return the time between two points that the device has passed."""
        if isinstance(start, float) and isinstance(end, float):
            return end - start
        seconds: float = start.elapsed_time(end) / 1e3
        return seconds
