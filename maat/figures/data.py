"""What figures draw: estimates with their ranges, points, series over an axis, distributions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, TypeAlias

Place: TypeAlias = float | str | datetime
"""Where something stands on an axis: a number, a word of a list, or a time."""


class Estimate(NamedTuple):
    """A value with the range from `low` to `high`: of runs, or of an interval of confidence.

    None: unknown, and not drawn.
    """

    value: float | None
    low: float | None = None
    high: float | None = None

    @classmethod
    def over(cls, values: Iterable[float]) -> Estimate:
        """Return the mean of the values, from the least to the most of them.

        >>> Estimate.over([1.0, 2.0, 6.0])
        Estimate(value=3.0, low=1.0, high=6.0)
        >>> Estimate.over([])
        Estimate(value=None, low=None, high=None)
        """
        known = list(values)
        return cls(sum(known) / len(known), min(known), max(known)) if known else cls(None)


class Point(NamedTuple):
    """A point of a scatter figure; `text` is shown under the pointer, instead of its values.

    It may have markup: texts of users are escaped first (`maat.figures.texts.escape`).
    """

    x: float
    y: float
    text: str = ""


class Series(NamedTuple):
    """Values along an axis, each at its place: both have one length."""

    at: Sequence[Place]
    values: Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Distribution:
    """The share of all that is at or below each value, both rising.

    `total`: how many there are; `known`: how many of them have a value. The last share is below 1
    if some have none.
    """

    values: Sequence[float]
    shares: Sequence[float]
    total: int
    known: int

    @classmethod
    def of(cls, values: Iterable[float | None], *, total: int | None = None) -> Distribution:
        """Return the distribution of the values that are known, among all or among `total`.

        >>> Distribution.of([2.0, None, 1.0, 1.0])
        Distribution(values=[1.0, 1.0, 2.0], shares=[0.25, 0.5, 0.75], total=4, known=3)
        """
        given = list(values)
        ordered = sorted(value for value in given if value is not None)
        count = len(given) if total is None else total
        shares = [(rank + 1) / count for rank in range(len(ordered))]
        return cls(ordered, shares, count, len(ordered))
