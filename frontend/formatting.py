"""Numbers, durations and times as people read them. Knows no component and no page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from math import floor, isfinite, log10

from maat.api import shown_numbers

ABSENT = shown_numbers.ABSENT
count = shown_numbers.count
duration = shown_numbers.duration
number = shown_numbers.number


def column(values: Sequence[float | None], digits: int = 3) -> list[str]:
    """Return the numbers of a column, all with the same decimals.

    They give the largest number `digits` significant figures, and the smallest at least two.
    """
    decimals = _decimals(
        [abs(value) for value in values if value is not None and isfinite(value) and value != 0],
        digits,
    )
    return [
        ABSENT
        if value is None or not isfinite(value)
        else f"{value:,.{decimals}f}".replace(",", " ")
        for value in values
    ]


def _decimals(sizes: Sequence[float], digits: int) -> int:
    if all(size == int(size) for size in sizes):
        return 0
    of_largest = digits - 1 - floor(log10(max(sizes)))
    of_smallest = 1 - floor(log10(min(sizes)))
    return max(0, min(max(of_largest, of_smallest), of_largest + 2))


def as_typed(value: object) -> str:
    """Return a value as a person types it: 4 and not 4.0."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def percent(share: float | None) -> str:
    """Whole percentages; one decimal below 1 %."""
    return ABSENT if share is None or not isfinite(share) else shown_numbers.percent(share)


def gpu_hours(value: float | None) -> str:
    return ABSENT if value is None else f"{value:,.1f}".replace(",", " ")


def plural(many: int, noun: str, nouns: str | None = None) -> str:
    return f"{many:,} {noun if many == 1 else nouns or noun + 's'}".replace(",", " ")


def parse_time(text: str | None) -> datetime | None:
    """An RFC 3339 time in UTC, or None."""
    if not text:
        return None
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def clock(text: str | None) -> str:
    """`20 Nov 14:03:10`, of the clock whose time it is: a cluster's own, or UTC."""
    moment = parse_time(text)
    return ABSENT if moment is None else f"{moment.day} {moment:%b %H:%M:%S}"


def gpus(gpu_count: int, gpu_type: str) -> str:
    """`4 × a100`."""
    return f"{gpu_count} × {gpu_type}"


def rho_by(rule: str) -> str:
    """What finish-time fairness is called, with the rule that it was computed by."""
    return f"rho ({rule})"
