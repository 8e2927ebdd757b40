"""The live preview: predicted goodput by GPU count and type.

Pure; the engine computes the numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from maat.api.models import GoodputPoint, GoodputSeries
from maat.models.catalog import CatalogFit, CatalogModel
from maat.scheduling.arrays import FloatArray
from maat.scheduling.efficiency import efficiency
from maat.scheduling.goodput import BatchLimits, best_plans
from maat.scheduling.matrix import NO_LOSS
from maat.scheduling.throughput import step_seconds


@dataclass(frozen=True)
class Question:
    """GPU counts up to `max_gpus`, at this share of the training done.

    `batch_size`: the fixed total in samples; None: the best. `learns`: True if a sample of a larger
    batch may be worth less; False for inference, which trains nothing.
    """

    max_gpus: int
    progress: float
    batch_size: int | None
    learns: bool = True


def preview(
    model: CatalogModel,
    gpu_types: Sequence[str],
    question: Question,
    *,
    gpus_per_node: Mapping[str, int],
) -> list[GoodputSeries]:
    return [_series(model, model.fits[t], question, per_node=gpus_per_node[t]) for t in gpu_types]


def _series(
    model: CatalogModel, fit: CatalogFit, question: Question, *, per_node: int
) -> GoodputSeries:
    counts = np.arange(fit.gpus_per_replica, question.max_gpus + 1, fit.gpus_per_replica)
    if len(counts) == 0:
        return GoodputSeries(gpu_type=fit.gpu_type, points=[])
    nodes, replicas = (
        (-(-counts // per_node)).astype(np.float64),
        (counts // fit.gpus_per_replica).astype(np.float64),
    )
    parameters = np.broadcast_to(fit.parameters, (len(counts), 7))
    phi = np.full(
        len(counts), model.noise_scale_at(question.progress) if question.learns else NO_LOSS
    )
    initial = np.full(
        len(counts), float(model.initial_batch_size if question.learns else model.max_batch_size)
    )
    found = best_plans(
        parameters,
        noise_scale=phi,
        initial_batch_size=initial,
        limits=_limits(model, fit, question.batch_size, len(counts)),
        node_count=nodes,
        replica_count=replicas,
    )
    worth = efficiency(phi, initial, found.total_batch_size.astype(np.float64))
    seconds = step_seconds(
        parameters,
        found.per_gpu_batch_size.astype(np.float64),
        node_count=nodes,
        replica_count=replicas,
        accumulation_steps=found.accumulation_steps.astype(np.float64),
    )
    points = [
        GoodputPoint(
            gpu_count=int(counts[i]),
            node_count=int(nodes[i]),
            goodput=float(found.goodput[i]),
            throughput=float(found.total_batch_size[i] / seconds[i]),
            efficiency=float(worth[i]),
            step_seconds=float(seconds[i]),
            total_batch_size=int(found.total_batch_size[i]),
            per_gpu_batch_size=int(found.per_gpu_batch_size[i]),
            accumulation_steps=int(found.accumulation_steps[i]),
        )
        for i in np.flatnonzero(found.goodput > 0)
    ]
    return GoodputSeries(gpu_type=fit.gpu_type, points=points)


def _limits(model: CatalogModel, fit: CatalogFit, batch_size: int | None, many: int) -> BatchLimits:
    smallest = model.initial_batch_size if batch_size is None else batch_size
    largest = model.max_batch_size if batch_size is None else batch_size
    per_gpu = (fit.smallest_per_gpu_batch_size, fit.largest_per_gpu_batch_size)
    bounds = (smallest, largest, *per_gpu, max(largest, model.max_batch_size))
    return BatchLimits(*(_full(bound, many) for bound in bounds))


def _full(value: float, many: int) -> FloatArray:
    return np.full(many, float(value))
