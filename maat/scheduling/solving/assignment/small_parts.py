"""Exact answers of many small assignment programmes at once, by dynamic programming over places.

Each part has R limits of few places, of which every pair falls under one. For all parts together,
as one array with one axis per limit:

    f_i[u] = max(f_{i-1}[u], max_j v_ij + f_{i-1}[u - a_ij])

is the most that the first i jobs are worth on at most u places.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from maat.scheduling.arrays import FloatArray, IntArray

_MOST_CELLS = 1 << 21  # of one array over parts and places


@dataclass(frozen=True)
class SmallParts:
    """K parts with P pairs, sorted by part and job.

    Attributes:
        part, job: Shape (P,); jobs are numbered from 0 within their part.
        row: Shape (P,), the limit that counts the pair.
        places: Shape (P,), at least 1.
        value: Shape (P,), above zero.
        capacity: Shape (K, R).
    """

    part: IntArray
    job: IntArray
    row: IntArray
    places: IntArray
    value: FloatArray
    capacity: IntArray


@dataclass(frozen=True)
class SmallAnswers:
    """The chosen pairs, ascending; and what the last place of each limit is worth, (K, R)."""

    chosen: IntArray
    prices: FloatArray


def states(capacity: IntArray) -> IntArray:
    """Return how many combinations of places each of K parts has, shape (K,)."""
    found: IntArray = np.prod(capacity + 1, axis=1)
    return found


def solve_small(parts: SmallParts) -> SmallAnswers:
    """Return the best answer of every part. Among equals fewer places come first."""
    chosen, prices = [], np.zeros(parts.capacity.shape)
    for group in _groups(parts.capacity):
        number = np.full(len(parts.capacity), -1)
        number[group] = np.arange(len(group))
        pairs = np.flatnonzero(number[parts.part] >= 0)
        table = _Table(parts, pairs, number, parts.capacity[group])
        chosen.append(table.choices())
        prices[group] = table.prices()
    return SmallAnswers(np.sort(np.concatenate(chosen)), prices)


def _groups(capacity: IntArray) -> list[IntArray]:
    """Return the numbers of parts of about the same size: an array has the size of its largest."""
    size = np.ceil(np.log2(capacity + 1)).astype(np.int64)
    _, group = np.unique(size, axis=0, return_inverse=True)
    found = []
    for g in range(int(group.max(initial=-1)) + 1):
        members = np.flatnonzero(group.reshape(-1) == g)
        most = max(_MOST_CELLS // prod((capacity[members].max(axis=0) + 1).tolist()), 1)
        found += [members[i : i + most] for i in range(0, len(members), most)]
    return found


class _Table:
    """f and the choices that led to it, for parts of about the same capacity, (K, R)."""

    def __init__(
        self, parts: SmallParts, pairs: IntArray, number: IntArray, capacity: IntArray
    ) -> None:
        self._parts, self._pairs, self._number, self._capacity = parts, pairs, number, capacity
        self._shape = (len(capacity), *(capacity.max(axis=0) + 1).tolist())
        self._value = np.zeros(self._shape)
        self._steps: list[tuple[IntArray, NDArray[np.int16]]] = []
        jobs = parts.job[pairs]
        for job in range(int(jobs.max(initial=-1)) + 1):
            self._add(pairs[jobs == job])

    def _add(self, pairs: IntArray) -> None:
        """Add one job of each part: its pairs."""
        parts, before = self._parts, self._value
        best, choice = before.copy(), np.zeros(self._shape, dtype=np.int16)
        kinds = np.unique(np.stack((parts.places[pairs], parts.row[pairs])), axis=1).T.tolist()
        pair_of = np.full((len(kinds) + 1, len(self._capacity)), -1)
        for option, (count, row) in enumerate(kinds, start=1):
            mine = pairs[(parts.places[pairs] == count) & (parts.row[pairs] == row)]
            k = self._number[parts.part[mine]]
            if count >= self._shape[row + 1]:
                continue
            pair_of[option, k] = mine
            to, source = [[slice(None)] * (len(self._shape) - 1) for _ in range(2)]
            to[row], source[row] = slice(count, None), slice(None, -count)
            worth = parts.value[mine].reshape(-1, *[1] * len(to))
            with_it = before[(k, *source)] + worth
            better = with_it > best[(k, *to)] + 1e-12
            target = (k, *to)
            best[target] = np.where(better, with_it, best[target])
            choice[target] = np.where(better, option, choice[target])
        self._value = best
        self._steps.append((pair_of, choice))

    def choices(self) -> IntArray:
        """Return the chosen pairs of all parts."""
        left, rows = self._capacity.copy(), np.arange(len(self._capacity))
        found = []
        for pair_of, choice in reversed(self._steps):
            option = choice[(rows, *left.T)].astype(np.int64)
            pairs = pair_of[option, rows]
            taken = np.flatnonzero(option > 0)
            left[taken, self._parts.row[pairs[taken]]] -= self._parts.places[pairs[taken]]
            found.append(pairs[taken])
        return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)

    def prices(self) -> FloatArray:
        """Return what the last place of each limit is worth, (K, R)."""
        rows, whole = np.arange(len(self._capacity)), self._capacity
        at = self._value[(rows, *whole.T)]
        found = np.zeros(whole.shape)
        for r in range(whole.shape[1]):
            less = whole.copy()
            less[:, r] = np.maximum(less[:, r] - 1, 0)
            found[:, r] = at - self._value[(rows, *less.T)]
        return found
