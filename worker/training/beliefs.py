"""What is believed of a job that trains, from what its agent reported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

import numpy as np

from backend.models import AttemptRow, JobFit, StepSample
from maat.scheduling.arrays import FloatArray
from maat.scheduling.belief import Belief, GradientStatistics, TypeBelief
from maat.scheduling.efficiency import noise_scale
from maat.scheduling.fitting import Sample, fit_throughput, is_possible
from maat.scheduling.goodput import BatchLimits, BatchPlan, best_plans, plan_for_batch
from maat.scheduling.job import Allocation, JobSpec
from maat.scheduling.throughput import step_seconds
from maat.vocabulary import AttemptKind


def believed_samples(rows: Sequence[StepSample]) -> Mapping[str, tuple[Sample, ...]]:
    """Return what models are fitted to, by GPU type: one sample per configuration."""
    ordered = sorted(rows, key=lambda row: row.gpu_type)
    merged = {
        kind: _merged(of_kind) for kind, of_kind in groupby(ordered, lambda row: row.gpu_type)
    }
    return {kind: samples for kind, samples in merged.items() if samples}


def fit_again(
    job_id: str,
    samples: Mapping[str, tuple[Sample, ...]],
    known: Mapping[str, JobFit],
    *,
    now: float,
) -> Mapping[str, JobFit]:
    """Return new fits of the types whose samples are not those of the known fit."""
    return {
        kind: _fitted(job_id, kind, found, known.get(kind), now)
        for kind, found in samples.items()
        if kind not in known or known[kind].samples != _as_json(found)
    }


def belief_of(
    samples: Mapping[str, tuple[Sample, ...]],
    fits: Mapping[str, JobFit],
    gradient: GradientStatistics | None,
    attempts: Sequence[AttemptRow],
) -> Belief:
    """Return the belief; every type with samples must have a fit.

    A profile is no run: after it, a job begins as small as it may (Sia section 3.1).
    """
    by_type = {
        kind: TypeBelief(found, np.array(fits[kind].parameters)) for kind, found in samples.items()
    }
    ran = [row for row in attempts if row.running_seconds is not None]
    peak = max((row.gpu_count for row in ran if row.kind == AttemptKind.TRAIN), default=0)
    return Belief(by_type, gradient, peak)


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


def _fitted(
    job_id: str, kind: str, samples: tuple[Sample, ...], before: JobFit | None, now: float
) -> JobFit:
    parameters = fit_throughput(samples)
    forecast = None
    if before is not None:
        seen = {tuple(each[:3]) for each in before.samples}
        unseen = [each for each in samples if each[:3] not in seen]
        forecast = before.forecast_error
        if unseen:
            forecast = relative_error(np.array(before.parameters), unseen)
    return JobFit(
        job_id=job_id,
        gpu_type=kind,
        parameters=parameters.tolist(),
        samples=_as_json(samples),
        error=relative_error(parameters, samples),
        forecast_error=forecast,
        fitted_seconds=now,
    )


def relative_error(parameters: FloatArray, samples: Sequence[Sample]) -> float:
    """Return the relative difference between modelled and measured step times, RMS."""
    nodes, replicas, batch, measured = np.array([each[:4] for each in samples]).T
    modelled = step_seconds(parameters, batch, node_count=nodes, replica_count=replicas)
    return float(np.sqrt(np.mean((modelled / measured - 1.0) ** 2)))


def _as_json(samples: Iterable[Sample]) -> list[list[float]]:
    return [list(each) for each in samples]


def _merged(rows: Iterable[StepSample]) -> tuple[Sample, ...]:
    """Return a sample per configuration, of steps without accumulation.

    Steps with accumulation count where there are no others: all their passes but the last take the
    step's time without its synchronisation.
    """
    found: dict[tuple[int, int, int], Sample] = {}
    for row in sorted(rows, key=lambda row: (row.accumulation_steps, row.id or 0)):
        key = (row.node_count, row.replica_count, row.per_gpu_batch_size)
        sync, passes = row.believed_sync, row.accumulation_steps + 1
        alone = max(row.believed_step - sync, 1e-9) / passes
        sample = Sample(*key, alone + sync, sync, row.believed_weight)
        if is_possible(sample):
            found.setdefault(key, sample)
    return tuple(found.values())
