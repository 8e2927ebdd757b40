"""The truth of the catalog's models: their fitted parameters."""

from __future__ import annotations

from functools import cache

from maat.models.catalog import CatalogModel, load_catalog
from maat.models.truth import FittedTruth


def truth_of(model: CatalogModel) -> FittedTruth:
    """Return the truth of a model whose fits are those of a catalog."""
    memory = model.memory_limits()
    return FittedTruth(
        initial_batch_size=model.initial_batch_size,
        max_batch_size=model.max_batch_size,
        work=model.work,
        epochs=model.epochs,
        parameters=model.parameters,
        smallest_per_gpu={t: limits.smallest_per_gpu for t, limits in memory.items()},
        largest_per_gpu={t: limits.largest_per_gpu for t, limits in memory.items()},
        gpus_per_replica={t: n for t, n in model.gpus_per_replica.items() if n > 1},
        noise_scale_curve=model.noise_scale_curve,
        slowdown=model.slowdown,
    )


@cache
def shipped_truth(name: str) -> FittedTruth:
    """Return the truth of a model that the catalog ships. Raises KeyError."""
    return truth_of(load_catalog()[name])
