"""An assignment problem prepared for array work: only the pairs that can matter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maat.scheduling.arrays import BoolArray, FloatArray, IntArray
from maat.scheduling.solving.assignment.problem import AssignmentProblem

NO_PAIR = -1  # the pair of a job that gets nothing
PREFERENCE = 1e-10  # share of the largest value that the least preferred of equal pairs loses
_MAX_LIMITS_IN_KEY = 62  # a row of memberships is a 64-bit integer up to this many limits


@dataclass(frozen=True, slots=True)
class PreparedProblem:
    """P pairs sorted by job, J jobs numbered from 0 without gaps, and R limits.

    value, places, job: shape (P,). `rank`, (P,): preference among equals from 0 to 1, smaller
    first. `starts`, (J,): the first pair of every job. `pattern`, (P,): index of the pair's row in
    `patterns`, (K, R): the places that a pair takes under every limit for each of its `places`; 0
    or 1 except under limits that count differently. `job_pattern`, (P,): job x K + pattern.
    `usage`, (R, P): places taken under every limit. `capacity`: (R,). `scale`: the largest value;
    tolerances are relative to it.
    """

    value: FloatArray
    places: FloatArray
    rank: FloatArray
    job: IntArray
    starts: IntArray
    pattern: IntArray
    patterns: FloatArray
    job_pattern: IntArray
    usage: FloatArray
    capacity: FloatArray
    scale: float

    @property
    def job_count(self) -> int:
        return len(self.starts)

    def reduced_values(self, prices: FloatArray) -> FloatArray:
        """Return the value of every pair less the price of its places, shape (P,)."""
        reduced: FloatArray = self.value - (self.patterns @ prices)[self.pattern] * self.places
        return reduced


def useful_pairs(problem: AssignmentProblem) -> IntArray:
    """Return the pairs of positive value that fit alone.

    No best answer needs any other.
    """
    return np.flatnonzero(
        (problem.value > 0) & (problem.usage <= np.maximum(problem.capacity, 0)).all(axis=1)
    )


def prepare(problem: AssignmentProblem, pairs: IntArray, tie_seed: int | None) -> PreparedProblem:
    """Return the problem on these pairs, with a preference among equal values."""
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
    patterns, pattern = (
        _distinct_memberships(membership)
        if problem.taken is None
        else _distinct_shares(usage / places[:, None])
    )
    number = new.cumsum() - 1
    return PreparedProblem(
        value=value - (PREFERENCE * scale) * rank,
        places=places,
        rank=rank,
        job=number,
        starts=np.flatnonzero(new),
        pattern=pattern,
        patterns=patterns,
        job_pattern=number * len(patterns) + pattern,
        usage=np.ascontiguousarray(usage.T),
        capacity=np.maximum(problem.capacity, 0).astype(np.float64),
        scale=scale,
    )


def _distinct_memberships(membership: BoolArray) -> tuple[FloatArray, IntArray]:
    """Return the distinct rows of (P, R), (K, R), and the index of each row, (P,)."""
    limits = membership.shape[1]
    if limits > _MAX_LIMITS_IN_KEY:
        rows, pattern = np.unique(membership, axis=0, return_inverse=True)
        return rows.astype(np.float64), pattern.reshape(-1)
    number, pattern = np.unique(membership @ (1 << np.arange(limits)), return_inverse=True)
    return (number[:, None] >> np.arange(limits) & 1).astype(np.float64), pattern


def _distinct_shares(shares: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the distinct rows of (P, R), (K, R), and the index of each row, (P,)."""
    rows, pattern = np.unique(shares, axis=0, return_inverse=True)
    return rows, pattern.reshape(-1)
