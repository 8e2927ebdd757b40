"""A measured step time, how much it counts in a fit, and which ones no fit takes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from maat.scheduling.arrays import FloatArray
from maat.scheduling.errors import InputError

MODEL_ERROR = 0.05
"""Relative error of the model itself: no sample counts more for being known better than this."""
SINGLE_DEVIATION = 0.3
"""Relative deviation of single step times that is assumed as long as few were measured."""
_ASSUMED_STEPS = 4
LEAST_STEP_SECONDS = 1e-6
"""A kernel alone takes longer to start."""


class SampleError(InputError):
    """A step time that cannot have been measured."""

    row_word = "sample"


class Sample(NamedTuple):
    """One measurement at (nodes, replicas, per-GPU batch).

    Seconds of a whole step, and of its synchronisation alone. `weight`: how much it counts in a
    fit, 0-1 (`weight_of_mean`).
    """

    node_count: int
    replica_count: int
    per_gpu_batch_size: int
    step_seconds: float
    sync_seconds: float
    weight: float = 1.0


def weight_of_mean(count: int, mean: float, deviation: float) -> float:
    """Return how much the mean of `count` step times counts in a fit, 0-1.

    By inverse variance: e^2 / (e^2 + s^2 / count), with e the model's own relative error and s the
    relative deviation of single steps. Four steps of an assumed deviation count with those
    measured.
    """
    measured = (deviation / mean) ** 2 * max(count - 1, 0)
    variance = (_ASSUMED_STEPS * SINGLE_DEVIATION**2 + measured) / (
        _ASSUMED_STEPS + max(count - 1, 0)
    )
    return MODEL_ERROR**2 / (MODEL_ERROR**2 + variance / max(count, 1))


def refuse_impossible(samples: Sequence[Sample]) -> None:
    """Raise SampleError for the first sample that cannot have been measured."""
    if _all_possible(np.array(samples, dtype=np.float64)):
        return
    for number, sample in enumerate(samples, start=1):
        for field, problem, remedy in _faults(sample):
            raise SampleError(
                problem, field=field, value=getattr(sample, field), remedy=remedy, row=number
            )


def is_possible(sample: Sample) -> bool:
    """Return whether a fit takes this sample."""
    return next(_faults(sample), None) is None


def _all_possible(table: FloatArray) -> bool:
    """Return at once what `_faults` says of every row. NaN is in no range."""
    counts, step, sync, weight = table[:, :3], table[:, 3], table[:, 4], table[:, 5]
    return bool(
        ((counts >= 1) & (counts < math.inf)).all()
        and ((step >= LEAST_STEP_SECONDS) & (step < math.inf) & (sync >= 0) & (sync <= step)).all()
        and ((weight > 0) & (weight <= 1)).all()
    )


def _faults(sample: Sample) -> Iterator[tuple[str, str, str]]:
    """Yield field, problem and remedy of all that is wrong with a sample."""
    for field in ("node_count", "replica_count", "per_gpu_batch_size"):
        if not 1 <= getattr(sample, field) < math.inf:
            yield field, "is no count of at least 1", "Leave the sample out, or correct it."
    if not LEAST_STEP_SECONDS <= sample.step_seconds < math.inf:
        yield "step_seconds", "is no time that a step can take", "Measure the step again."
    if not 0 <= sample.sync_seconds < math.inf:
        yield "sync_seconds", "is no time", "Give 0 where nothing is synchronised."
    elif sample.sync_seconds > sample.step_seconds:
        yield (
            "sync_seconds",
            f"is more than the whole step takes ({sample.step_seconds:g} s)",
            "Give the part of the step's time that synchronises gradients.",
        )
    if not 0 < sample.weight <= 1:
        yield "weight", "is not above 0 and at most 1", "Give 1 for a sample that counts fully."
