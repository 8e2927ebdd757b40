"""Fits the throughput model to measured step times (Pollux section 4.1)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from maat.scheduling.arrays import FloatArray
from maat.scheduling.fitting.minimum import search_minimum
from maat.scheduling.fitting.published import published_search
from maat.scheduling.fitting.samples import (
    LEAST_STEP_SECONDS,
    Sample,
    SampleError,
    is_possible,
    refuse_impossible,
    weight_of_mean,
)

__all__ = [
    "ACROSS_OVER_WITHIN",
    "LEAST_STEP_SECONDS",
    "FitSearch",
    "Sample",
    "SampleError",
    "fit_throughput",
    "is_possible",
    "weight_of_mean",
]

ACROSS_OVER_WITHIN = 1.1


class FitSearch(StrEnum):
    """How a fit looks for its parameters."""

    MINIMUM = "minimum"  # until it is at the minimum of the loss
    PUBLISHED = "published"  # as the published simulators: one start, and an early end


_SEARCHES = {FitSearch.MINIMUM: search_minimum, FitSearch.PUBLISHED: published_search}


def fit_throughput(
    samples: Sequence[Sample],
    *,
    across_over_within: float = 0.0,
    search: FitSearch = FitSearch.MINIMUM,
) -> FloatArray:
    """Return the seven parameters, shape (7,). They minimise

        RMS log error of T_grad + RMS log error of T_step
            + 1e-3 (gamma - 1)^2 + 1e-2 ((b_n/a_n)^2 + (b_r/a_r)^2)

    with samples counting by their weights in both means.

    Args:
        across_over_within: The least ratio of synchronisation cost across nodes to that within
            one, while no sample spans several nodes. Pollux section 4.1 has 0, so that a job is
            tried there; its published code has 1.1 (ACROSS_OVER_WITHIN).
        search: PUBLISHED ends where the published simulators end, at times far from the minimum.

    Raises:
        SampleError: There is no sample, or one that cannot have been measured.
    """
    if not samples:
        raise SampleError(
            "is missing", field="samples", remedy="A throughput model needs at least one sample."
        )
    refuse_impossible(samples)
    parameters = _SEARCHES[search](samples)
    if not any(sample.node_count > 1 for sample in samples):
        parameters[2] = max(parameters[2], parameters[4] * across_over_within)
        parameters[3] = max(parameters[3], parameters[5] * across_over_within)
    return parameters
