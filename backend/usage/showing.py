"""Sums of use as the API shows them: hours, costs, waits. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from backend.usage.costs import MS_PER_HOUR, Cost, price_text
from backend.usage.tally import PARTS, Sums, Waits
from maat.api.usage import TypeUse, UsageFigures, WaitsOut


@dataclass
class Amount:
    """GPU milliseconds by PARTS, and their cost."""

    sums: Sums = field(default_factory=lambda: np.zeros(len(PARTS), dtype=np.int64))
    cost: Cost = Cost()

    def add(self, sums: Sums, cost: Cost) -> None:
        self.sums = self.sums + sums
        self.cost = self.cost + cost

    def less(self, other: Amount) -> Amount:
        left, cost = self.sums - other.sums, self.cost
        return Amount(
            left,
            Cost(
                cost.amount - other.cost.amount,
                cost.unpriced_ms - other.cost.unpriced_ms,
                cost.is_priced,
            ),
        )

    def figures(self) -> UsageFigures:
        allocated, profile, restart, lost, useful, unmeasured = (
            each / MS_PER_HOUR for each in self.sums.tolist()
        )
        used = int(self.sums[0] - self.sums[1] - self.sums[2]) / MS_PER_HOUR
        return UsageFigures(
            allocated_gpu_hours=allocated,
            profile_gpu_hours=profile,
            restart_gpu_hours=restart,
            used_gpu_hours=used,
            lost_gpu_hours=lost,
            useful_gpu_hours=useful,
            unmeasured_gpu_hours=unmeasured,
            cost=self.cost.text,
            unpriced_gpu_hours=self.cost.unpriced_ms / MS_PER_HOUR,
        )


def show_waits(waits: Waits) -> WaitsOut:
    if waits.jobs == 0:
        return WaitsOut(
            jobs=0, mean_seconds=None, median_seconds=None, p90_seconds=None, longest_seconds=None
        )
    median, p90 = waits.quantiles((0.5, 0.9))
    return WaitsOut(
        jobs=waits.jobs,
        mean_seconds=waits.waited_ms / 1000 / waits.jobs,
        median_seconds=median,
        p90_seconds=p90,
        longest_seconds=waits.longest_ms / 1000,
    )


def show_type(
    name: str, used: Sums, usable: Sums, costs: Sequence[Cost], micros: int | None
) -> TypeUse:
    allocated, capacity = int(used[0]), int(usable[0])
    idle, fragmented, reserved = costs
    return TypeUse(
        gpu_type=name,
        capacity_gpu_hours=capacity / MS_PER_HOUR,
        allocated_gpu_hours=allocated / MS_PER_HOUR,
        used_gpu_hours=int(used[0] - used[1] - used[2]) / MS_PER_HOUR,
        useful_gpu_hours=int(used[PARTS.index("useful_ms")]) / MS_PER_HOUR,
        idle_gpu_hours=max(capacity - allocated, 0) / MS_PER_HOUR,
        fragmented_gpu_hours=int(usable[1]) / MS_PER_HOUR,
        reserved_idle_gpu_hours=int(usable[2]) / MS_PER_HOUR,
        utilisation=min(allocated / capacity, 1.0) if capacity else None,
        price_per_gpu_hour=None if micros is None else price_text(micros),
        idle_cost=idle.text,
        fragmented_cost=fragmented.text,
        reserved_idle_cost=reserved.text,
    )
