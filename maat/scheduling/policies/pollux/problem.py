"""What Pollux's search searches, over arrays: the problem of a round and the fitness of allocation matrices. Searches nothing.

An individual is a matrix (J, N): GPUs of job j on node n, jobs in order of priority. A population has shape (P, J, N) and is never looped over.
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
    """Jobs under `jobs`, shape (J,), may hold at most `places` GPUs together on nodes under `nodes`, shape (N,)."""

    jobs: BoolArray
    nodes: BoolArray
    places: int


@dataclass(frozen=True)
class SearchProblem:
    """What is to be allocated. C is the most GPUs that any job may have.

    `room` (N,): GPUs to be had on each node. `most_on_node` (J, N): of them, what a job may take. `speedup` (J, C + 1, 2): of a job with so
    many GPUs on one node, and on several; zero where it may not or cannot have them. `allowed` (J, C + 1): counts that a job may have, zero
    among them. `present` (J, N): what jobs hold. `change_factor` (J,): what any other row is discounted by. `taken` (N,): nodes where a job
    outside this search spans several nodes.
    """

    room: IntArray
    most_on_node: CountArray
    speedup: FloatArray
    allowed: BoolArray
    present: CountArray
    change_factor: FloatArray
    taken: BoolArray
    quotas: tuple[Quota, ...] = ()
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
        """Fitness if every job had for itself what is best for it: no individual has more."""
        count = np.minimum(self.present.sum(axis=1), self.most)
        several = (np.count_nonzero(self.present, axis=1) > 1).astype(np.int64)
        stays = self.speedup[np.arange(self.jobs), count, several]
        reach = (
            np.arange(self.most + 1)
            <= np.minimum(self.most_on_node.sum(axis=1), self.room.sum())[:, None]
        )
        best = np.where(reach[:, :, None], self.speedup, 0.0).max(axis=(1, 2))
        return float(
            power_mean(np.maximum(stays, best * self.change_factor) + self.least_speedup, self.p)
        )

    @property
    def top(self) -> float:
        """Fitness at which nothing is left to be found."""
        return self.ceiling * (1 - 1e-12)

    @cached_property
    def at_most(self) -> IntArray:
        """The largest allowed count that is no more than c, shape (J, C + 1)."""
        counts = np.where(self.allowed, np.arange(self.most + 1), 0)
        found: IntArray = np.maximum.accumulate(counts, axis=1)
        return found

    @cached_property
    def speedup_flat(self) -> FloatArray:
        return np.ascontiguousarray(self.speedup).reshape(-1)

    @cached_property
    def row_start(self) -> IntArray:
        """Where each job's speedups begin in `speedup_flat`, shape (J,)."""
        return np.arange(self.jobs) * (2 * (self.most + 1))


def held_gpus(population: CountArray) -> CountArray:
    """GPUs of every job, shape (P, J). Einstein's sums cost a fifth of numpy's along an axis this short."""
    found: CountArray = np.einsum("pjn->pj", population)
    return found


def held_nodes(population: CountArray) -> CountArray:
    """Nodes of every job, shape (P, J)."""
    return held_gpus(np.minimum(population, 1))


def used_gpus(population: CountArray) -> CountArray:
    """GPUs in use on every node, shape (P, N)."""
    found: CountArray = np.einsum("pjn->pn", population)
    return found


def speedups(problem: SearchProblem, population: CountArray) -> FloatArray:
    """SPEEDUP of every job in every individual, a change discounted (Pollux eq. 15 and REALLOC_FACTOR), shape (P, J)."""
    spread = held_nodes(population) > 1
    found = problem.speedup_flat[problem.row_start + 2 * held_gpus(population) + spread]
    changed = held_gpus(np.abs(population - problem.present)) > 0
    discounted: FloatArray = np.where(changed, found * problem.change_factor, found)
    return discounted


def fitness(problem: SearchProblem, population: CountArray) -> FloatArray:
    """FITNESS_p: the power mean of the speedups (Pollux eq. 14), each raised by `least_speedup` so that one idle job is not all; shape (P,)."""
    return power_mean(speedups(problem, population) + problem.least_speedup, problem.p)


def power_mean(values: FloatArray, p: float) -> FloatArray:
    """(mean of values^p)^(1/p) over the last axis, the geometric mean at p = 0; 0 over no values. Values are above zero."""
    if values.shape[-1] == 0:
        return np.zeros(values.shape[:-1])
    if p == 0:
        geometric: FloatArray = np.exp(np.log(values).mean(axis=-1))
        return geometric
    scale = values.min(axis=-1, keepdims=True) if p < 0 else values.max(axis=-1, keepdims=True)
    mean: FloatArray = scale[..., 0] * ((values / scale) ** p).mean(axis=-1) ** (1.0 / p)
    return mean
