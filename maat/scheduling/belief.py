"""What the scheduler believes of a job, from its samples and gradient statistics.

Never the truth: the simulator's true step times are in maat.models.truth, which no module here can
import.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Protocol

import numpy as np

from maat.scheduling.arrays import FloatArray
from maat.scheduling.efficiency import noise_scale
from maat.scheduling.fitting import FitSearch, Sample, fit_throughput

SampleKey = tuple[int, int, int]


class Fitter(Protocol):
    """Fits samples of one (job, GPU type) by the seven parameters, shape (7,)."""

    def __call__(self, samples: tuple[Sample, ...], /) -> FloatArray: ...


class MemoisingFitter:
    """Calls fit_throughput once per distinct set of samples.

    Jobs of one model often report the same step times.
    """

    def __init__(
        self, *, across_over_within: float = 0.0, search: FitSearch = FitSearch.MINIMUM
    ) -> None:
        """Create a fitter; the arguments are those of fit_throughput."""
        self._fit_by_samples: dict[tuple[Sample, ...], FloatArray] = {}
        self._fit = partial(fit_throughput, across_over_within=across_over_within, search=search)

    def __call__(self, samples: tuple[Sample, ...], /) -> FloatArray:
        found = self._fit_by_samples.get(samples)
        if found is None:
            found = self._fit_by_samples[samples] = self._fit(samples)
            found.setflags(write=False)
        return found


@dataclass(frozen=True, slots=True)
class GradientStatistics:
    """Squared norm of the gradient and its variance, both at the initial batch size."""

    square: float
    variance: float


@dataclass(frozen=True)
class TypeBelief:
    """One job on one GPU type: its distinct samples, and the model fitted to them.

    Samples are in the order of arrival; the first of each kind stays. `model`: the seven
    parameters, or the fitter that computes them when they are first read; many policies never do.
    """

    samples: tuple[Sample, ...]
    model: FloatArray | Fitter

    def __getstate__(self) -> dict[str, object]:
        """Return the fields only; derived values are computed again."""
        return {"samples": self.samples, "model": self.model}

    @cached_property
    def parameters(self) -> FloatArray:
        """Return the throughput parameters, shape (7,)."""
        return self.model if isinstance(self.model, np.ndarray) else self.model(self.samples)

    @cached_property
    def by_key(self) -> Mapping[SampleKey, Sample]:
        """Return the samples by (nodes, replicas, per-GPU batch)."""
        return {_key(s): s for s in self.samples}

    @cached_property
    def knows_synchronisation(self) -> bool:
        """Return whether a sample of more than one replica exists."""
        return any(s.replica_count > 1 for s in self.samples)

    @cached_property
    def largest_replica_count(self) -> int:
        return max(s.replica_count for s in self.samples)


@dataclass(frozen=True)
class Belief:
    """The beliefs about one job by GPU type, and about its gradients.

    `peak_replica_count`: the most replicas on which it ever ran, on any type.
    """

    by_type: Mapping[str, TypeBelief] = field(default_factory=dict)
    gradient: GradientStatistics | None = None
    peak_replica_count: int = 0

    def with_samples(self, gpu_type: str, samples: Iterable[Sample], *, fitter: Fitter) -> Belief:
        """Return the belief after these samples; itself if none is new."""
        known = self.by_type.get(gpu_type)
        seen = known.by_key if known is not None else {}
        fresh: dict[SampleKey, Sample] = {}
        for sample in samples:
            if _key(sample) not in seen:
                fresh.setdefault(_key(sample), sample)
        if not fresh:
            return self
        everything = (*seen.values(), *fresh.values())
        return replace(self, by_type={**self.by_type, gpu_type: TypeBelief(everything, fitter)})

    def noise_scale(self, initial_batch_size: float) -> float:
        """Return phi in samples; 0 until gradients were measured.

        With 0 a larger batch has no value.
        """
        if self.gradient is None:
            return 0.0
        return float(noise_scale(self.gradient.square, self.gradient.variance, initial_batch_size))


def _key(sample: Sample) -> SampleKey:
    return sample[:3]
