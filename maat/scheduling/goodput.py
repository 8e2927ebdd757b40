"""Goodput = throughput x efficiency, and the best batch plan of a configuration.

Pollux eq. 4 and 13, over arrays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from maat.scheduling.arrays import FloatArray, IntArray
from maat.scheduling.efficiency import efficiency
from maat.scheduling.throughput import overlapped, pass_seconds, sync_seconds

BATCH_CANDIDATES = 50
_CHUNK = 512  # pairs: 512 x 50 candidates of float64 stay in the second-level cache
_EPSILON = 1e-8


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """total = replicas x per-GPU x (accumulation + 1)."""

    total_batch_size: int
    per_gpu_batch_size: int
    accumulation_steps: int


@lru_cache(maxsize=1 << 16)
def plan_for_batch(
    total: int, *, replicas: int, largest_per_gpu: int, largest_total: int, accumulate_above: int
) -> BatchPlan:
    """Return the plan of a total batch size with the fewest accumulation steps.

    It fits memory, is rounded up to whole samples, and down to stay within `largest_total`. One
    replica accumulates at least once above `accumulate_above`: the gradient noise scale needs two
    gradients (Pollux section 4).
    """
    local = min(total / replicas, max(largest_total // replicas, 1))
    accumulation = max(math.ceil(local / largest_per_gpu - _EPSILON) - 1, 0)
    if replicas == 1 and local > accumulate_above + _EPSILON:
        accumulation = max(accumulation, 1)
    passes = replicas * (accumulation + 1)
    per_gpu = max(min(math.ceil(local / (accumulation + 1) - _EPSILON), largest_total // passes), 1)
    return BatchPlan(passes * per_gpu, per_gpu, accumulation)


class BatchLimits(NamedTuple):
    """The batch sizes that a configuration may use. Arrays of shape (P,), samples.

    `most_total`: no plan has more samples, however its batch is rounded to whole samples per GPU;
    None: `largest_total`. Infinite: it may be rounded up beyond the largest, as the published
    simulators do.
    """

    smallest_total: FloatArray
    largest_total: FloatArray
    smallest_per_gpu: FloatArray
    largest_per_gpu: FloatArray
    most_total: FloatArray | None = None

    def of(self, pairs: slice) -> BatchLimits:
        """Return the limits of some of the pairs."""
        most = None if self.most_total is None else np.asarray(self.most_total)[pairs]
        smallest, largest, per_gpu, most_per_gpu = (np.asarray(x)[pairs] for x in self[:4])
        return BatchLimits(smallest, largest, per_gpu, most_per_gpu, most)


@dataclass(frozen=True)
class BestPlans:
    """The best batch plan of P pairs. Shapes (P,).

    `goodput`: effective samples/s, zero if no plan fits.
    """

    goodput: FloatArray
    total_batch_size: IntArray
    per_gpu_batch_size: IntArray
    accumulation_steps: IntArray

    def plan(self, pair: int) -> BatchPlan:
        return BatchPlan(
            int(self.total_batch_size[pair]),
            int(self.per_gpu_batch_size[pair]),
            int(self.accumulation_steps[pair]),
        )


class Candidates(NamedTuple):
    """Batch candidates B of P pairs, shapes (P, B).

    They depend on memory only, not on the model's speed.
    """

    per_gpu: FloatArray
    accumulation: FloatArray
    total: FloatArray
    fits: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]


def batch_candidates(
    limits: BatchLimits, replica_count: FloatArray, initial_batch_size: FloatArray
) -> Candidates:
    """Return fifty geometrically spaced total batch sizes per pair, shapes (P, B).

    Each has the smallest accumulation that fits memory. One GPU above the initial batch size
    accumulates at least once: the gradient noise scale needs two gradients (Pollux section 4). A
    GPU has whole samples: they are rounded up, and down where the total would exceed the most.
    """
    replicas = replica_count[:, None]
    low = np.maximum(limits.smallest_total, limits.smallest_per_gpu * replica_count)
    with np.errstate(divide="ignore", invalid="ignore"):
        span = np.log(np.maximum(limits.largest_total, 1.0) / low)
    spread = np.exp(span[:, None] * np.linspace(0.0, 1.0, BATCH_CANDIDATES))
    spread[:, -1] = limits.largest_total / low
    local = low[:, None] * spread / replicas
    most = limits.largest_total if limits.most_total is None else limits.most_total
    local = np.minimum(local, np.maximum(np.floor(most / replica_count + _EPSILON), 1.0)[:, None])
    accumulation = np.ceil(local / limits.largest_per_gpu[:, None] - _EPSILON) - 1
    must_accumulate = (replicas == 1) & (local > initial_batch_size[:, None] + _EPSILON)
    accumulation = np.maximum(accumulation, np.where(must_accumulate, 1.0, 0.0))
    fewest = np.floor(most[:, None] / (replicas * (accumulation + 1)) + _EPSILON)
    whole = np.minimum(np.ceil(local / (accumulation + 1) - _EPSILON), fewest)
    fits = (whole >= limits.smallest_per_gpu[:, None]) & (whole <= limits.largest_per_gpu[:, None])
    fits &= (low <= limits.largest_total + _EPSILON)[:, None]
    per_gpu = np.maximum(whole, 1.0)  # of none: more replicas than samples, which does not fit
    return Candidates(per_gpu, accumulation, replicas * per_gpu * (accumulation + 1), fits)


def best_plans(
    parameters: FloatArray,
    *,
    noise_scale: FloatArray,
    initial_batch_size: FloatArray,
    limits: BatchLimits,
    node_count: FloatArray,
    replica_count: FloatArray,
) -> BestPlans:
    """Maximise goodput over the batch candidates of every pair (Pollux eq. 13).

        GOODPUT(K, m, s) = M / T_iter x EFFICIENCY(M)

    `parameters` has shape (P, 7), all other arrays (P,). The first maximum wins. Pairs are
    evaluated in chunks that stay in cache.
    """
    pairs = len(parameters)
    goodput = np.zeros(pairs)
    total, per_gpu, accumulation = (np.zeros(pairs, dtype=np.int64) for _ in range(3))
    for start in range(0, pairs, _CHUNK):
        part = slice(start, start + _CHUNK)
        found = batch_candidates(
            limits.of(part),
            replica_count[part],
            initial_batch_size[part],
        )
        value = goodput_of(
            parameters[part],
            found,
            noise_scale=noise_scale[part],
            initial_batch_size=initial_batch_size[part],
            node_count=node_count[part],
            replica_count=replica_count[part],
        )
        best = np.argmax(value, axis=1)
        rows = np.arange(len(best))
        goodput[part] = value[rows, best]
        total[part] = found.total[rows, best].astype(np.int64)
        per_gpu[part] = found.per_gpu[rows, best].astype(np.int64)
        accumulation[part] = found.accumulation[rows, best].astype(np.int64)
    return BestPlans(goodput, total, per_gpu, accumulation)


def goodput_of(
    parameters: FloatArray,
    candidates: Candidates,
    *,
    noise_scale: FloatArray,
    initial_batch_size: FloatArray,
    node_count: FloatArray,
    replica_count: FloatArray,
) -> FloatArray:
    """Return effective samples per second of every candidate, shape (P, B).

    Zero if it does not fit memory.
    """
    throughput = throughput_of(
        parameters, candidates, node_count=node_count, replica_count=replica_count
    )
    worth = efficiency(noise_scale[:, None], initial_batch_size[:, None], candidates.total)
    return throughput * worth


def throughput_of(
    parameters: FloatArray,
    candidates: Candidates,
    *,
    node_count: FloatArray,
    replica_count: FloatArray,
) -> FloatArray:
    """Return samples per second of every candidate, shape (P, B).

    Zero if it does not fit memory. `parameters` has shape (P, 7).
    """
    wide = parameters[:, None, :]
    compute = pass_seconds(wide, candidates.per_gpu)
    sync = sync_seconds(parameters, node_count, replica_count)[:, None]
    seconds = candidates.accumulation * compute + overlapped(compute, sync, wide[..., 6])
    return np.where(candidates.fits, candidates.total / seconds, 0.0)
