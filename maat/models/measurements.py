"""Measurements of a model: step times by placement and batch, gradients by epoch.

Reads no file and interpolates nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from maat.scheduling.arrays import FloatArray, IntArray


@dataclass(frozen=True)
class StepTable:
    """Measured step times of one model on one GPU type.

    `by_placement`: normalised placement digits -> (per-GPU batch ascending, step seconds, sync
    seconds), shape (M,) each. `points`: shape (S, 5), columns node count, GPU count, per-GPU batch,
    step seconds, sync seconds: the placement rows averaged by the first three, then the scalability
    rows. `scalability`: only those, shape (S', 5). If a replica spans several GPUs, "per-GPU batch"
    is the batch of one replica; counts remain counts of GPUs.
    """

    by_placement: Mapping[str, tuple[FloatArray, FloatArray, FloatArray]]
    points: FloatArray
    scalability: FloatArray
    gpus_per_replica: int = 1

    @cached_property
    def smallest_per_gpu_batch(self) -> int:
        return int(min(batch[0] for batch, _, _ in self.by_placement.values()))

    @cached_property
    def largest_per_gpu_batch(self) -> int:
        return int(max(batch[-1] for batch, _, _ in self.by_placement.values()))

    @cached_property
    def most_nodes(self) -> int:
        """The most nodes on which steps were measured."""
        return int(self.points[:, 0].max())

    @cached_property
    def most_gpus(self) -> int:
        """The most GPUs on which steps were measured."""
        return int(self.points[:, 1].max())

    @cached_property
    def one_replica_reference(self) -> float:
        """Samples/s of one replica: its largest batch over its largest step time."""
        batch, step, _ = self.by_placement[
            min(self.by_placement, key=lambda p: (sum(map(int, p)), len(p)))
        ]
        return float(batch.max() / step.max())


@dataclass(frozen=True)
class EpochTable:
    """Training as measured at B total batch sizes over E epochs.

    `batch_sizes`: shape (B,), ascending; all else (B, E). Progress counts optimiser steps at the
    smallest batch size, at the end of each epoch. Gradient statistics are those during the epoch,
    the variance at the smallest batch size. `measured_steps`: optimiser steps of each batch size
    until the end of each epoch.
    """

    batch_sizes: IntArray
    progress: FloatArray
    gradient_square: FloatArray
    gradient_variance: FloatArray
    measured_steps: FloatArray | None = None

    @property
    def initial_batch_size(self) -> int:
        return int(self.batch_sizes[0])

    @property
    def max_batch_size(self) -> int:
        return int(self.batch_sizes[-1])

    @property
    def epoch_count(self) -> int:
        return int(self.progress.shape[1])

    @cached_property
    def boundaries(self) -> FloatArray:
        """Progress at the end of each epoch: the smallest over all batch sizes, (E,)."""
        boundaries: FloatArray = self.progress.min(axis=0)
        return boundaries

    @cached_property
    def steps(self) -> FloatArray:
        """Optimiser steps of each batch size until the end of each epoch, shape (B, E).

        As measured, else as the gradients predict.
        """
        if self.measured_steps is not None:
            return self.measured_steps
        square, variance = self.gradient_square, self.gradient_variance
        spread = variance / (self.batch_sizes / self.initial_batch_size)[:, None] + square
        gain = np.where(spread > 0, (variance + square) / np.where(spread > 0, spread, 1.0), 1.0)
        return frozen(np.cumsum(np.diff(self.progress, axis=1, prepend=0.0) / gain, axis=1))

    @property
    def total_progress(self) -> float:
        return float(self.boundaries[-1])

    def starting_at(self, batch_size: int) -> EpochTable:
        """Return the same training for a job that cannot run below this batch size.

        It must be a measured one, and becomes the initial batch size: progress counts its steps,
        variances are those at it.
        """
        first = self.batch_sizes.tolist().index(batch_size)
        ratio = batch_size / self.initial_batch_size
        square, variance = self.gradient_square[first], self.gradient_variance[first]
        gain = (variance + square) / (variance / ratio + square)
        steps = np.diff(self.progress[first:], axis=1, prepend=0.0) / gain
        return EpochTable(
            self.batch_sizes[first:],
            frozen(np.cumsum(steps, axis=1)),
            self.gradient_square[first:],
            frozen(self.gradient_variance[first:] / ratio),
            None if self.measured_steps is None else self.measured_steps[first:],
        )


@dataclass(frozen=True)
class MeasuredModel:
    """All measurements of one model; `steps` by Maat's GPU type names."""

    name: str
    steps: Mapping[str, StepTable]
    epochs: EpochTable


@lru_cache(maxsize=10_000)  # a profile repeats each placement at every batch size
def normalised_placement(placement: str) -> str:
    """Return the lexicographically smallest rotation of the digits that are not zero.

    The same shape then has one name.
    """
    digits = placement.replace("0", "")
    return min((digits[i:] + digits[:i] for i in range(len(digits))), default="")


def frozen(array: FloatArray) -> FloatArray:
    """Return the array itself, made read-only."""
    array.setflags(write=False)
    return array
