"""Sums the prices of rounds by UTC day of cluster time. Pure: reads and writes no row.

A round's price stands until the next round, so it counts by that time. Where no round was made for
long (the worker was away), the last price is not stretched over the gap.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from maat.scheduling.limits import LimitKind
from maat.scheduling.solving.report import SolveStatus

LONGEST_INTERVALS = 3.0  # of rounds: how long a price may stand without a further round


class RoundFacts(NamedTuple):
    """The columns of a round that are summed."""

    number: int
    at_seconds: float
    policy: str
    policy_version: str
    placer: str
    status: str
    prices: Mapping[str, float]
    gpus_by_type: Mapping[str, Mapping[str, int]]


class DayKey(NamedTuple):
    day: dt.date
    gpu_type: str
    policy: str
    policy_version: str
    placer: str


@dataclass
class DaySums:
    """What is added to a row of `marginal_value_days`."""

    first_seconds: float
    last_seconds: float
    numbers: set[int] = field(default_factory=set)
    seconds: float = 0.0
    priced_seconds: float = 0.0
    positive_seconds: float = 0.0
    value_seconds: float = 0.0
    used_seconds: float = 0.0
    capacity_seconds: float = 0.0

    def values(self) -> dict[str, float]:
        return {name: value for name, value in vars(self).items() if name.endswith("seconds")}


def sum_rounds(
    rounds: Sequence[RoundFacts], *, epoch: dt.datetime, round_seconds: float
) -> dict[DayKey, DaySums]:
    """Sum all rounds but the last, which only says when the one before it ended."""
    sums: dict[DayKey, DaySums] = {}
    for found, following in pairwise(rounds):
        longest = found.at_seconds + LONGEST_INTERVALS * round_seconds
        end = min(following.at_seconds, longest)
        for day, start, until in _by_day(epoch, found.at_seconds, end):
            _add(sums, found, day, start, until)
    return sums


def price_of(found: RoundFacts, gpu_type: str) -> float | None:
    """Return the price of one GPU of a type; None if the round has none.

    Policies that solve no programme have none, nor has a round that kept the present allocation
    because no answer was usable. Where quotas or weights deal the GPUs out, the capacity's price is
    the least that any tenant's rows have (docs/quotas.md): every tenant gains at least that much
    from one more GPU. If it is zero, one more goes to a tenant that wants it, so to one whose row
    has a price: the least of these counts. A ceiling's price does not: no GPU of the cluster
    widens it.
    """
    if found.status in (
        SolveStatus.NOT_NEEDED,
        SolveStatus.KEPT_PRESENT,
        SolveStatus.POLICY_FAILED,
    ):
        return None
    price = found.prices.get(f"{LimitKind.CAPACITY}:{gpu_type}")
    if price:
        return price
    dealt = (f"{LimitKind.QUOTA}:{gpu_type}:", f"priority:{gpu_type}:")  # of maat/scheduling/quotas
    of_rows = [row for name, row in found.prices.items() if row > 0 and name.startswith(dealt)]
    return min(of_rows, default=price)


def _add(
    sums: dict[DayKey, DaySums], found: RoundFacts, day: dt.date, start: float, until: float
) -> None:
    lasted = until - start
    for gpu_type, gpus in found.gpus_by_type.items():
        key = DayKey(day, gpu_type, found.policy, found.policy_version, found.placer)
        to = sums.setdefault(key, DaySums(start, until))
        to.first_seconds, to.last_seconds = (
            min(to.first_seconds, start),
            max(to.last_seconds, until),
        )
        to.numbers.add(found.number)
        to.seconds += lasted
        to.used_seconds += lasted * gpus["used"]
        to.capacity_seconds += lasted * gpus["capacity"]
        price = price_of(found, gpu_type)
        if price is not None:
            to.priced_seconds += lasted
            to.value_seconds += lasted * price
            to.positive_seconds += lasted if price > 0 else 0.0


def _by_day(epoch: dt.datetime, start: float, end: float) -> Iterator[tuple[dt.date, float, float]]:
    """Split a span of cluster time at the midnights of UTC."""
    while start < end:
        day = (epoch + dt.timedelta(seconds=start)).astimezone(dt.UTC).date()
        midnight = dt.datetime.combine(day + dt.timedelta(days=1), dt.time(), tzinfo=dt.UTC)
        until = min(end, max((midnight - epoch).total_seconds(), start + 1e-6))
        yield day, start, until
        start = until


def facts_of(rows: Iterable[Any]) -> list[RoundFacts]:
    return [RoundFacts(*row) for row in rows]
