"""Reduces series for drawing without losing their shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

Value = TypeVar("Value", float, float | None)

MAX_POINTS = 2000  # of one trace of a chart: more than a screen has pixel columns


def reduced(points: Sequence[Sequence[Value]], limit: int = MAX_POINTS) -> list[list[Value]]:
    """Return at most `limit` points, including the first and the last.

    Keeps the lowest and the highest point of each stretch of time, so that no peak is lost. A gap
    (None) is lower than any value.
    """
    if len(points) <= limit:
        return [list(point) for point in points]
    heights = [-math.inf if point[1] is None else point[1] for point in points]
    kept = {0, len(points) - 1}
    for stretch in np.array_split(np.arange(1, len(points) - 1), (limit - 2) // 2):
        kept |= {min(stretch, key=heights.__getitem__), max(stretch, key=heights.__getitem__)}
    return [list(points[i]) for i in sorted(kept)]


def shares(values: Sequence[float], of: int, limit: int = MAX_POINTS) -> list[list[float]]:
    """Return a distribution to draw: ascending [value, share of `of` up to it].

    At most `limit` points, with the first and the last.
    """
    ordered = sorted(values)
    count = len(ordered)
    kept = (
        [round(i * (count - 1) / (limit - 1)) for i in range(limit)]
        if count > limit
        else list(range(count))
    )
    return [[ordered[i], (i + 1) / of] for i in kept]
