"""What is believed of a job that trains, from what its agent reported."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import groupby

import numpy as np

from backend.models import GradientSample, StepSample
from maat.scheduling.arrays import FloatArray
from maat.scheduling.belief import Belief, GradientStatistics
from maat.scheduling.efficiency import noise_scale
from maat.scheduling.fitting import Sample, fit_throughput
from maat.scheduling.goodput import BatchLimits, BatchPlan, best_plans, plan_for_batch
from maat.scheduling.job import Allocation, JobSpec

_STEP = 0.02
"""A mean that moves by less than two per cent is the same: models are fitted when one moves."""


def belief_of(samples: Sequence[StepSample], gradient: GradientSample | None) -> Belief:
    """Return the belief from all measurements of a job."""
    belief = Belief()
    ordered = sorted(samples, key=lambda row: row.gpu_type)
    for kind, rows in groupby(ordered, lambda row: row.gpu_type):
        belief = belief.with_samples(kind, _merged(rows), fitter=_fit)
    peak = max((row.replica_count for row in samples), default=0)
    known = None if gradient is None else GradientStatistics(gradient.square, gradient.variance)
    return Belief(belief.by_type, known, peak)


def plan_of(spec: JobSpec, belief: Belief, held: Allocation, node_count: int) -> BatchPlan:
    """Return the batch plan of highest believed goodput on these GPUs.

    A job of fixed batch size, or of which nothing is believed yet, keeps its own.
    """
    replicas = held.gpu_count // spec.replica_gpus(held.gpu_type)
    limits = spec.memory[held.gpu_type]
    known = belief.by_type.get(held.gpu_type)
    if spec.has_fixed_batch or known is None or belief.gradient is None:
        return plan_for_batch(
            max(spec.requested_batch_size, limits.smallest_per_gpu * replicas),
            replicas=replicas,
            largest_per_gpu=limits.largest_per_gpu,
            largest_total=spec.max_batch_size,
            accumulate_above=spec.initial_batch_size,
        )
    initial = float(spec.initial_batch_size)
    phi = noise_scale(belief.gradient.square, belief.gradient.variance, initial)
    one = [
        np.array([float(x)])
        for x in (
            spec.initial_batch_size,
            spec.max_batch_size,
            limits.smallest_per_gpu,
            limits.largest_per_gpu,
        )
    ]
    return best_plans(
        known.parameters[None, :],
        noise_scale=np.array([float(phi)]),
        initial_batch_size=np.array([initial]),
        limits=BatchLimits(*one),
        node_count=np.array([float(node_count)]),
        replica_count=np.array([float(replicas)]),
    ).plan(0)


def _merged(rows: Iterable[StepSample]) -> list[Sample]:
    """Return a sample per configuration, of steps without accumulation.

    Steps with accumulation count where there are no others: all their passes but the last take the
    step's time without its synchronisation.
    """
    found: dict[tuple[int, int, int], Sample] = {}
    for row in sorted(rows, key=lambda row: row.accumulation_steps):
        key = (row.node_count, row.replica_count, row.per_gpu_batch_size)
        passes = row.accumulation_steps + 1
        alone = max(row.step_mean - row.sync_mean, 1e-9) / passes
        step = _rounded(alone + row.sync_mean)
        found.setdefault(key, Sample(*key, step, min(_rounded(row.sync_mean), step)))
    return list(found.values())


def _rounded(seconds: float) -> float:
    """Round a time to the next of a scale whose steps are two per cent."""
    return math.exp(round(math.log(seconds) / _STEP) * _STEP) if seconds > 0 else 0.0


@lru_cache(maxsize=20_000)
def _fit(samples: tuple[Sample, ...]) -> FloatArray:
    found = fit_throughput(samples)
    found.setflags(write=False)
    return found
