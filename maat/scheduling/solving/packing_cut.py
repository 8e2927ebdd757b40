"""A linear row that proves that nodes cannot hold some parts together.

Knows sizes, not jobs. A non-negative superadditive function f of sizes, f(a) + f(b) <= f(a + b),
sums over the parts on a node to at most f of the node's free GPUs (its room). So every packing
keeps

    sum of f over all parts  <=  sum of f over all rooms

A linear programme finds the f that these parts violate most. It is the dual of the fractional
packing: if no f is violated, the parts can be packed except for rounding.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from maat.scheduling.arrays import FloatArray
from maat.scheduling.solving.linear_programme import LinearMethod, LinearProgramme
from maat.scheduling.solving.linear_solver import solve_linear

_MAX_SCALE = 60  # factors tried to make the values of f whole
_ROUNDING = 1e-6  # added before rounding down


def weights_against(parts: Sequence[int], rooms: Sequence[int]) -> tuple[int, ...] | None:
    """Return a function of sizes that proves the parts do not fit the rooms.

    It is superadditive, with whole values for sizes 0 to the largest. Its sum over `parts` exceeds
    its sum over `rooms`. None if no such function is found.
    """
    largest = max((*parts, *rooms), default=0)
    if largest == 0:
        return None
    exact = _most_violated(parts, rooms, largest)
    for scale in range(1, _MAX_SCALE + 1):
        weights = tuple(np.floor(scale * exact + _ROUNDING).astype(int).tolist())
        if _sum(weights, parts) > _sum(weights, rooms) and _is_superadditive(weights):
            return weights
    return None


def _sum(weights: Sequence[int], sizes: Sequence[int]) -> int:
    return sum(weights[size] for size in sizes)


def _is_superadditive(weights: Sequence[int]) -> bool:
    last = len(weights) - 1
    return all(
        weights[a] + weights[b] <= weights[a + b]
        for a in range(1, last + 1)
        for b in range(a, last + 1 - a)
    )


def _most_violated(parts: Sequence[int], rooms: Sequence[int], largest: int) -> FloatArray:
    """Return the f, (largest + 1,), whose sum over parts exceeds rooms by most.

    Its values are at most 1.
    """
    gain = (np.bincount(parts, minlength=largest + 1) - np.bincount(rooms, minlength=largest + 1))[
        1:
    ].astype(np.float64)
    pairs = [(a, b) for a in range(1, largest + 1) for b in range(a, largest + 1 - a)]
    rows = [_sum_row(a, b) for a, b in pairs]
    row = np.concatenate(
        [np.full(len(entries), r) for r, entries in enumerate(rows)] + [np.array([len(rows)])]
    )
    column = np.array([size - 1 for entries in rows for size in entries] + [largest - 1])
    entry = np.array([value for entries in rows for value in entries.values()] + [1.0])
    most = np.concatenate((np.zeros(len(rows)), np.ones(1)))
    programme = LinearProgramme(gain, row.astype(np.int64), column.astype(np.int64), entry, most)
    found = solve_linear(programme, present=np.zeros(largest), method=LinearMethod.SIMPLEX)
    return np.concatenate((np.zeros(1), found.x))


def _sum_row(a: int, b: int) -> dict[int, float]:
    """Return the coefficients of f(a) + f(b) - f(a + b), by size."""
    return {a: 2.0, a + b: -1.0} if a == b else {a: 1.0, b: 1.0, a + b: -1.0}
