"""The problem of Pollux's search, and the fitness of allocation matrices.

An individual is a matrix (J, N): GPUs of job j on node n, jobs in order of priority. A population
has shape (P, J, N). No function loops over it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from maat.scheduling.arrays import BoolArray, FloatArray, IntArray

CountArray = NDArray[np.int32]


@dataclass(frozen=True)
class Quota:
    """At most `places` GPUs for jobs (J,) together on nodes (N,)."""

    jobs: BoolArray
    nodes: BoolArray
    places: int


@dataclass(frozen=True)
class WholeTypes:
    """Jobs that one GPU is not enough for, on nodes of T types.

    A job keeps GPUs of one type only, so a row of several types may leave such a job with too few
    to run. `jobs` (J,): which they are. `nodes` (T, N): the nodes of each type. `legal`
    (J, T, C + 1): the counts of each type that a job of these may have; zero is not among them.
    """

    jobs: BoolArray
    nodes: BoolArray
    legal: BoolArray

    @cached_property
    def fewest(self) -> IntArray:
        """The smallest legal count of each type, shape (J, T); beyond any count if none."""
        none = np.iinfo(np.int64).max
        return np.where(self.legal.any(axis=2), np.argmax(self.legal, axis=2), none)


@dataclass(frozen=True)
class SearchProblem:
    """What to allocate to J jobs on N nodes; C is the largest count.

    `room` (N,): free GPUs on each node. `most_on_node` (J, N): how many of them a job may take.
    `speedup` (J, C + 1, 2): speedup of a job by GPU count, on one node and on several; zero if it
    may not or cannot have them. `allowed` (J, C + 1): counts that a job may have; zero is always
    allowed. `present` (J, N): what jobs hold. `change_factor` (J,): discount of every row other
    than the present one. `taken` (N,): nodes where a job outside this search spans several nodes.
    `weight` (J,): of each job in the mean; None for equal ones. `whole_types`: None if all nodes
    are of one type, or one GPU is enough for every job.
    """

    room: IntArray
    most_on_node: CountArray
    speedup: FloatArray
    allowed: BoolArray
    present: CountArray
    change_factor: FloatArray
    taken: BoolArray
    weight: FloatArray | None = None
    quotas: tuple[Quota, ...] = ()
    whole_types: WholeTypes | None = None
    p: float = -1.0
    least_speedup: float = 4e-3
    avoid_interference: bool = True
    most_nodes: int = 16

    @property
    def jobs(self) -> int:
        return len(self.present)

    @property
    def most(self) -> int:
        return int(self.allowed.shape[1]) - 1

    @cached_property
    def ceiling(self) -> float:
        """Fitness if each job had what is best for it: an upper bound."""
        count = np.minimum(self.present.sum(axis=1), self.most)
        several = (np.count_nonzero(self.present, axis=1) > 1).astype(np.int64)
        stays = self.speedup[np.arange(self.jobs), count, several]
        reach = (
            np.arange(self.most + 1)
            <= np.minimum(self.most_on_node.sum(axis=1), self.room.sum())[:, None]
        )
        best = np.where(reach[:, :, None], self.speedup, 0.0).max(axis=(1, 2))
        return float(self.mean(np.maximum(stays, best * self.change_factor)))

    def mean(self, speedup: FloatArray) -> FloatArray:
        """Return the power mean (eq. 14) of speedups, (..., J), by weight; shape (...).

        `least_speedup` is added to each, so that one idle job does not make the fitness zero.
        """
        return power_mean(speedup + self.least_speedup, self.p, self._share)

    @cached_property
    def _share(self) -> FloatArray | None:
        """The part of each job in the mean, shape (J,); None if all count alike."""
        weight = self.weight
        if weight is None or not len(weight) or (weight == weight[0]).all():
            return None
        share: FloatArray = weight / weight.sum()
        return share

    @property
    def top(self) -> float:
        """Fitness at which the search may stop."""
        return self.ceiling * (1 - 1e-12)

    @cached_property
    def at_most(self) -> IntArray:
        """The largest allowed count of at most c, shape (J, C + 1)."""
        counts = np.where(self.allowed, np.arange(self.most + 1), 0)
        found: IntArray = np.maximum.accumulate(counts, axis=1)
        return found

    @cached_property
    def speedup_flat(self) -> FloatArray:
        return np.ascontiguousarray(self.speedup).reshape(-1)

    @cached_property
    def row_start(self) -> IntArray:
        """The start of each job's speedups in `speedup_flat`, shape (J,)."""
        return np.arange(self.jobs) * (2 * (self.most + 1))


def held_gpus(population: CountArray) -> CountArray:
    """Return the GPUs of every job, shape (P, J).

    `np.einsum` takes a fifth of the time of `sum` along an axis this short.
    """
    found: CountArray = np.einsum("pjn->pj", population)
    return found


def held_nodes(population: CountArray) -> CountArray:
    """Return the nodes of every job, shape (P, J)."""
    return held_gpus(np.minimum(population, 1))


def used_gpus(population: CountArray) -> CountArray:
    """Return the GPUs in use on every node, shape (P, N)."""
    found: CountArray = np.einsum("pjn->pn", population)
    return found


def speedups(problem: SearchProblem, population: CountArray) -> FloatArray:
    """Return SPEEDUP of each job (eq. 15), changes discounted, shape (P, J)."""
    spread = held_nodes(population) > 1
    found = problem.speedup_flat[problem.row_start + 2 * held_gpus(population) + spread]
    changed = held_gpus(np.abs(population - problem.present)) > 0
    discounted: FloatArray = np.where(changed, found * problem.change_factor, found)
    return discounted


def fitness(problem: SearchProblem, population: CountArray) -> FloatArray:
    """Return FITNESS_p: the mean of the speedups (eq. 14), shape (P,)."""
    return problem.mean(speedups(problem, population))


def power_mean(values: FloatArray, p: float, share: FloatArray | None = None) -> FloatArray:
    """Return (mean of values^p)^(1/p) over the last axis; 0 over no values.

    It is the geometric mean at p = 0. Values must be above zero. `share`: the part of each value in
    the mean, with the sum one; None for equal parts.
    """
    if values.shape[-1] == 0:
        return np.zeros(values.shape[:-1])
    if p == 0:
        geometric: FloatArray = np.exp(_mean(np.log(values), share))
        return geometric
    scale = values.min(axis=-1, keepdims=True) if p < 0 else values.max(axis=-1, keepdims=True)
    mean: FloatArray = scale[..., 0] * _mean((values / scale) ** p, share) ** (1.0 / p)
    return mean


def _mean(values: FloatArray, share: FloatArray | None) -> FloatArray:
    found: FloatArray = values.mean(axis=-1) if share is None else values @ share
    return found
