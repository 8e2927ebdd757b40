"""The pairs of an assignment problem that can matter, prepared for array work. States nothing new and solves nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maat.scheduling.arrays import BoolArray, FloatArray, IntArray
from maat.scheduling.solving.assignment_problem import AssignmentProblem

PREFERENCE = 1e-10  # of the largest value: what the least preferred of equal pairs is worth less
_BITS = 62  # limits whose membership fits one integer


@dataclass(frozen=True, slots=True)
class Programme:
    """The pairs that can matter, prepared for array work. Pairs sorted by job; jobs numbered 0..J-1 without gaps.

    value, places, job: shape (P,); `rank`: preference among equals, 0 to 1, smaller first, (P,); `starts`: first pair of every job, (J,);
    `kind`: which of the K distinct ways to take places a pair has, (P,), and `patterns`, (K, R): places taken under every limit for each of its `places`,
    0 or 1 but under limits that count otherwise;
    `cell`: job x K + kind, (P,); usage: places taken under every limit, (R, P); capacity: (R,); `scale`: the largest value, which tolerances are relative to.
    """

    value: FloatArray
    places: FloatArray
    rank: FloatArray
    job: IntArray
    starts: IntArray
    kind: IntArray
    patterns: FloatArray
    cell: IntArray
    usage: FloatArray
    capacity: FloatArray
    scale: float

    @property
    def jobs(self) -> int:
        return len(self.starts)

    def reduced(self, prices: FloatArray) -> FloatArray:
        """Value less the price of the places taken, shape (P,)."""
        reduced: FloatArray = self.value - (self.patterns @ prices)[self.kind] * self.places
        return reduced


def pairs_that_matter(problem: AssignmentProblem) -> IntArray:
    """Pairs worth something that would fit if they were alone: no best answer needs another."""
    return np.flatnonzero(
        (problem.value > 0) & (problem.usage <= np.maximum(problem.capacity, 0)).all(axis=1)
    )


def programme_of(problem: AssignmentProblem, pairs: IntArray, tie_seed: int | None) -> Programme:
    count = len(pairs)
    places = problem.places[pairs].astype(np.float64)
    job = problem.job[pairs]
    new = np.empty(count, dtype=bool)
    new[0] = True
    np.not_equal(job[1:], job[:-1], out=new[1:])
    value = problem.value[pairs]
    scale = float(value.max())
    if tie_seed is None:
        rank = (places + np.arange(count) / count) / (places.max() + 1)
    else:
        rank = np.random.default_rng(tie_seed).permutation(count) / count
    membership = problem.membership[pairs]
    usage = problem.usage[pairs].astype(np.float64)
    patterns, kind = (
        _distinct_rows(membership)
        if problem.taken is None
        else _distinct_shares(usage / places[:, None])
    )
    number = new.cumsum() - 1
    return Programme(
        value=value - (PREFERENCE * scale) * rank,
        places=places,
        rank=rank,
        job=number,
        starts=np.flatnonzero(new),
        kind=kind,
        patterns=patterns,
        cell=number * len(patterns) + kind,
        usage=np.ascontiguousarray(usage.T),
        capacity=np.maximum(problem.capacity, 0).astype(np.float64),
        scale=scale,
    )


def _distinct_rows(membership: BoolArray) -> tuple[FloatArray, IntArray]:
    """The distinct rows of (P, R) as 0 and 1, (K, R), and which of them each row is, (P,)."""
    limits = membership.shape[1]
    if limits > _BITS:
        rows, kind = np.unique(membership, axis=0, return_inverse=True)
        return rows.astype(np.float64), kind.reshape(-1)
    number, kind = np.unique(membership @ (1 << np.arange(limits)), return_inverse=True)
    return (number[:, None] >> np.arange(limits) & 1).astype(np.float64), kind


def _distinct_shares(shares: FloatArray) -> tuple[FloatArray, IntArray]:
    """The distinct rows of (P, R), (K, R), and which of them each row is, (P,)."""
    rows, kind = np.unique(shares, axis=0, return_inverse=True)
    return rows, kind.reshape(-1)
