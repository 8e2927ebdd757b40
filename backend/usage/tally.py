"""Sums of use: by whom and what, how long jobs waited, and what could have been used. Pure.

Tallies of neighbouring stretches of time add up to that of both: all sums are whole numbers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from backend.usage import sketch
from backend.usage.models import ALL_TENANTS, CapacityDay, UsageDay, WaitDay

PARTS = ("allocated_ms", "profile_ms", "restart_ms", "lost_ms", "useful_ms", "unmeasured_ms")
CAPACITY_PARTS = ("capacity_ms", "fragmented_ms", "reserved_ms")

Sums = NDArray[np.int64]


class Dimension(StrEnum):
    """What use is summed by, besides GPU type and day."""

    TENANT = "tenant"
    USER = "user"
    MODEL = "model"
    LABEL = "label"


WAITED_BY = (Dimension.TENANT, Dimension.MODEL)


class Key(NamedTuple):
    """Whose use it is. `tenant_id`: ALL_TENANTS for the sum of all."""

    dimension: Dimension
    tenant_id: str
    name: str


@dataclass
class Waits:
    """Jobs that were first started, and how long they had waited."""

    jobs: int = 0
    waited_ms: int = 0
    longest_ms: int = 0
    sketches: list[bytes] = field(default_factory=list)

    @classmethod
    def of(cls, seconds: Iterable[float]) -> Self:
        waits = [max(each, 0.0) for each in seconds]
        whole = [round(each * 1000) for each in waits]
        return cls(len(waits), sum(whole), max(whole, default=0), [sketch.packed(waits)])

    def add(self, other: Waits) -> None:
        self.jobs += other.jobs
        self.waited_ms += other.waited_ms
        self.longest_ms = max(self.longest_ms, other.longest_ms)
        self.sketches += other.sketches

    @classmethod
    def summed(cls, parts: Iterable[Waits]) -> Self:
        total = cls()
        for part in parts:
            total.add(part)
        return total

    @property
    def sketch(self) -> bytes:
        return sketch.merged(self.sketches)

    def quantiles(self, shares: Sequence[float]) -> list[float]:
        """Return quantiles in seconds: to 1 % by the sketch, never above the longest wait."""
        return [min(one, self.longest_ms / 1000) for one in sketch.quantiles(self.sketch, shares)]


def _zeros() -> Sums:
    return np.zeros(len(PARTS), dtype=np.int64)


def _no_capacity() -> Sums:
    return np.zeros(len(CAPACITY_PARTS), dtype=np.int64)


@dataclass
class Tally:
    """What was used in a stretch of time.

    `used`: by key and GPU type, the PARTS in milliseconds. `capacity`: by GPU type, the
    CAPACITY_PARTS.
    """

    used: dict[tuple[Key, str], Sums] = field(default_factory=lambda: defaultdict(_zeros))
    waits: dict[Key, Waits] = field(default_factory=lambda: defaultdict(Waits))
    capacity: dict[str, Sums] = field(default_factory=lambda: defaultdict(_no_capacity))

    def add(self, other: Tally) -> None:
        for key, sums in other.used.items():
            self.used[key] += sums
        for of, waits in other.waits.items():
            self.waits[of].add(waits)
        for gpu_type, sums in other.capacity.items():
            self.capacity[gpu_type] += sums


def keys_of(tenant_id: str, owner_id: str, model: str, labels: dict[str, str]) -> list[Key]:
    """Return all that a job's use counts for."""
    names = [f"{key}={value}" for key, value in labels.items()]
    return [
        Key(Dimension.TENANT, tenant_id, tenant_id),
        Key(Dimension.USER, tenant_id, owner_id),
        *(Key(Dimension.MODEL, tenant, model) for tenant in (tenant_id, ALL_TENANTS)),
        *(
            Key(Dimension.LABEL, tenant, name)
            for tenant in (tenant_id, ALL_TENANTS)
            for name in names
        ),
    ]


def sums_of(row: UsageDay) -> Sums:
    return np.array([getattr(row, part) for part in PARTS], dtype=np.int64)


def capacity_of(row: CapacityDay) -> Sums:
    return np.array([getattr(row, part) for part in CAPACITY_PARTS], dtype=np.int64)


def waits_of(row: WaitDay) -> Waits:
    return Waits(row.jobs, row.waited_ms, row.longest_ms, [row.sketch])
