"""What is published of a catalog's model, as a past life: for models that nobody has trained."""

from __future__ import annotations

from functools import cache

import numpy as np

from maat.forecasting.history import PastLife
from maat.models.catalog import CatalogFit, CatalogModel, load_catalog
from maat.scheduling.belief import GradientStatistics
from maat.scheduling.fitting import Sample
from maat.scheduling.throughput import pass_seconds, step_seconds

_SHAPES = ((1, 1), (1, 2), (1, 4), (2, 8), (4, 16))  # nodes, replicas


@cache
def published_life(model: str) -> PastLife | None:
    """Return step times and gradients of a model of the catalog; None for another one."""
    known = load_catalog().get(model)
    return None if known is None else _life_of(known)


def _life_of(model: CatalogModel) -> PastLife:
    noise = tuple(
        (share, GradientStatistics(1.0, phi / model.initial_batch_size))
        for share, phi in model.noise_scale_curve
    )
    return PastLife(
        {name: _samples(fit) for name, fit in model.fits.items()}, (noise,) if noise else ()
    )


def _samples(fit: CatalogFit) -> tuple[Sample, ...]:
    low, high = fit.smallest_per_gpu_batch_size, fit.largest_per_gpu_batch_size
    return tuple(
        _sample(fit, nodes, replicas, batch)
        for nodes, replicas in _SHAPES
        for batch in sorted({low, high})
    )


def _sample(fit: CatalogFit, nodes: int, replicas: int, batch: int) -> Sample:
    size = np.asarray(float(batch))
    whole = float(
        step_seconds(
            fit.parameters, size, node_count=np.asarray(nodes), replica_count=np.asarray(replicas)
        )
    )
    alone = float(pass_seconds(fit.parameters, size))
    return Sample(nodes, replicas, batch, whole, max(whole - alone, 0.0))
