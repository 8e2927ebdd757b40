"""The catalog of models that Maat ships, each figure with its provenance.

Fitted step times, gradient noise, limits and restart seconds. The figures are measurements by
others, fitted by catalog_builder. This module reads them, and refuses a catalog that makes no
sense.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

import numpy as np

from maat.models.gpu_types import meant_types
from maat.scheduling.arrays import FloatArray
from maat.scheduling.errors import JobError, ProfileError
from maat.scheduling.job import JobDeclaration, JobSpec, MemoryLimits, declared
from maat.scheduling.throughput import ThroughputParameters
from maat.vocabulary import Adaptivity, WorkloadKind

FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class FitError:
    """|predicted / measured - 1| of step times over all measured points.

    Half of them are below the median, 95 % below p95.
    """

    median: float
    p95: float


@dataclass(frozen=True, slots=True)
class CatalogGpuType:
    """A GPU type of the measurements.

    `gpus_per_node`: of the measured machines.
    """

    name: str
    title: str
    memory_gib: float
    gpus_per_node: int
    provenance: str


@dataclass(frozen=True)
class CatalogFit:
    """One model on one GPU type.

    `largest_per_gpu_batch_size`: limit by memory; of one replica if a replica spans several GPUs.
    `reference_samples_per_second`: one replica at its largest batch. `fit_error`: None if the row
    is derived rather than fitted.
    """

    gpu_type: str
    throughput_parameters: ThroughputParameters
    smallest_per_gpu_batch_size: int
    largest_per_gpu_batch_size: int
    gpus_per_replica: int
    reference_samples_per_second: float
    points: int
    largest_measured_gpus: int
    fit_error: FitError | None
    provenance: str

    @cached_property
    def parameters(self) -> FloatArray:
        """The seven parameters, shape (7,)."""
        array = np.array(self.throughput_parameters, dtype=np.float64)
        array.setflags(write=False)
        return array


@dataclass(frozen=True)
class CatalogModel:
    """One model.

    `work`: effective samples of a standard training (iterations at the initial batch size x that
    size), in `epochs` epochs of measured statistics. `restart_seconds`: true seconds of checkpoint,
    stop, start and restore. `slowdown`: how much slower training is than the measured step times
    alone. `noise_scale_curve`: (share of training done, phi in samples), ascending.
    """

    name: str
    title: str
    task: str
    dataset: str
    optimizer: str
    learning_rate_rule: str
    initial_batch_size: int
    max_batch_size: int
    epochs: int
    work: float
    restart_seconds: float
    slowdown: float
    noise_scale_curve: tuple[tuple[float, float], ...]
    fits: Mapping[str, CatalogFit]
    provenance: str

    @property
    def gpu_types(self) -> tuple[str, ...]:
        return tuple(self.fits)

    @property
    def parameters(self) -> Mapping[str, FloatArray]:
        """Throughput parameters by GPU type, shape (7,) each."""
        return {name: fit.parameters for name, fit in self.fits.items()}

    @property
    def gpus_per_replica(self) -> Mapping[str, int]:
        """GPUs that one replica spans, by GPU type."""
        return {name: fit.gpus_per_replica for name, fit in self.fits.items()}

    def memory_limits(self) -> Mapping[str, MemoryLimits]:
        """Per-GPU batch sizes by GPU type."""
        return self._memory

    @cached_property
    def _memory(self) -> Mapping[str, MemoryLimits]:
        """One for all jobs of the model."""
        return {
            name: MemoryLimits(fit.smallest_per_gpu_batch_size, fit.largest_per_gpu_batch_size)
            for name, fit in self.fits.items()
        }

    def noise_scale_at(self, progress_share: float) -> float:
        """Return phi in samples at a share of the training done.

        Linear between the curve's points, constant beyond its ends.
        """
        share, phi = self._curve
        return float(np.interp(progress_share, share, phi))

    @cached_property
    def _curve(self) -> tuple[FloatArray, FloatArray]:
        share, phi = np.array(self.noise_scale_curve, dtype=np.float64).T
        return share, phi

    def job_spec(
        self,
        job: JobDeclaration,
        *,
        id: str,
        submitted_at: float,
        owner: str = "local",
        tenant: str = "default",
    ) -> JobSpec:
        """Complete a declaration with what the catalog knows of this model.

        Raises JobError on what the model could never run.
        """
        if not 0.0 < job.work_scale < math.inf:
            raise JobError(
                "is no share above zero",
                field="work_scale",
                value=job.work_scale,
                remedy="Give a number above 0, such as 1.",
            )
        self._check_batch("batch_size", job.batch_size, job.workload_kind)
        self._check_batch("max_batch_size", job.max_batch_size, job.workload_kind)
        self._check_gpu_types(job.gpu_types)
        completed = declared(job) | {
            "model": self.name,
            "adaptivity": job.adaptivity or Adaptivity.ADAPTIVE,
            "max_batch_size": self.max_batch_size
            if job.max_batch_size is None
            else job.max_batch_size,
        }
        return JobSpec(
            **completed,
            id=id,
            submitted_at=submitted_at,
            owner=owner,
            tenant=tenant,
            work=self.work * job.work_scale,
            initial_batch_size=self.initial_batch_size,
            memory=self.memory_limits(),
            gpus_per_replica=self.gpus_per_replica,
            restart_seconds=self.restart_seconds,
        )

    def _check_batch(self, field: str, batch_size: int | None, kind: WorkloadKind) -> None:
        """Check a batch size. Inference may use smaller ones than training."""
        least = (
            1
            if kind is WorkloadKind.LATENCY_INFERENCE and field == "batch_size"
            else self.initial_batch_size
        )
        if batch_size is not None and not least <= batch_size <= self.max_batch_size:
            raise JobError(
                f"is outside what {self.title} was measured to train with",
                field=field,
                value=batch_size,
                remedy=f"Give {least} to {self.max_batch_size}.",
            )

    def _check_gpu_types(self, gpu_types: tuple[str, ...] | None) -> None:
        if gpu_types is not None and not set(gpu_types) & set(self.fits):
            meant = " or ".join(meant_types(gpu_types, self.fits))
            raise JobError(
                f"names no GPU type on which {self.title} was measured",
                field="gpu_types",
                value=gpu_types,
                remedy=f"{meant and f'Write {meant}. '}Measured are {', '.join(self.fits)}.",
            )


@dataclass(frozen=True)
class Catalog:
    """The whole catalog, and the source of its figures."""

    source: str
    gpu_types: Mapping[str, CatalogGpuType]
    models: Mapping[str, CatalogModel]


@cache
def load_catalog() -> Mapping[str, CatalogModel]:
    """Return the models that Maat ships, by name."""
    return shipped_catalog().models


@cache
def shipped_catalog() -> Catalog:
    """Return all that Maat ships: models and GPU types."""
    return parse_catalog(files("maat.models").joinpath("catalog.json").read_text(encoding="utf-8"))


def parse_catalog(text: str) -> Catalog:
    """Return a catalog from its JSON.

    Raises ProfileError naming the field that makes no sense.
    """
    try:
        data = json.loads(text)
        if data["format"] != FORMAT_VERSION:
            raise ProfileError(
                "is of another version",
                field="format",
                value=data["format"],
                remedy="Build the catalog again.",
            )
        gpu_types = {
            name: CatalogGpuType(name=name, **row) for name, row in data["gpu_types"].items()
        }
        models = {name: _model(name, row) for name, row in data["models"].items()}
        for model in models.values():
            _check_claims(model, gpu_types)
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise ProfileError(
            f"is no catalog: {problem!r}",
            field="catalog",
            remedy="Build it with maat.models.catalog_builder.",
        ) from problem
    return Catalog(data["source"], gpu_types, models)


def _model(name: str, row: dict[str, Any]) -> CatalogModel:
    fits = {gpu_type: _fit(gpu_type, fit) for gpu_type, fit in row.pop("fits").items()}
    curve = tuple((float(share), float(phi)) for share, phi in row.pop("noise_scale_curve"))
    return CatalogModel(name=name, fits=fits, noise_scale_curve=curve, **row)


def _fit(gpu_type: str, row: dict[str, Any]) -> CatalogFit:
    parameters = ThroughputParameters(*map(float, row.pop("throughput_parameters")))
    error = row.pop("fit_error")
    return CatalogFit(
        gpu_type=gpu_type,
        throughput_parameters=parameters,
        fit_error=None if error is None else FitError(**error),
        **row,
    )


def _check_claims(model: CatalogModel, gpu_types: Mapping[str, CatalogGpuType]) -> None:
    for field, value, holds in _claims(model, gpu_types):
        if not holds:
            raise ProfileError(
                "makes no sense",
                field=f"{model.name}.{field}",
                value=value,
                remedy="Build the catalog again.",
            )


def _claims(
    model: CatalogModel, gpu_types: Mapping[str, CatalogGpuType]
) -> Iterator[tuple[str, object, bool]]:
    """Yield the rules of a model, as (field, value, whether it holds)."""
    for field in ("work", "restart_seconds", "slowdown"):
        value = getattr(model, field)
        yield field, value, math.isfinite(value) and value > 0
    yield "epochs", model.epochs, model.epochs >= 1
    yield (
        "initial_batch_size",
        model.initial_batch_size,
        1 <= model.initial_batch_size <= model.max_batch_size,
    )
    shares = [share for share, _ in model.noise_scale_curve]
    yield (
        "noise_scale_curve",
        shares,
        bool(shares) and shares == sorted(set(shares)) and 0 <= shares[0] <= shares[-1] <= 1,
    )
    yield (
        "noise_scale_curve",
        model.noise_scale_curve,
        all(math.isfinite(phi) and phi >= 0 for _, phi in model.noise_scale_curve),
    )
    yield "fits", tuple(model.fits), bool(model.fits) and set(model.fits) <= set(gpu_types)
    for name, fit in model.fits.items():
        parameters = fit.throughput_parameters
        yield (
            f"{name}.throughput_parameters",
            parameters,
            all(math.isfinite(p) and p > 0 for p in parameters) and 1 <= parameters.gamma <= 10,
        )
        limits = (fit.smallest_per_gpu_batch_size, fit.largest_per_gpu_batch_size)
        yield f"{name}.largest_per_gpu_batch_size", limits, 1 <= limits[0] <= limits[1]
        yield f"{name}.gpus_per_replica", fit.gpus_per_replica, fit.gpus_per_replica >= 1
        yield (
            f"{name}.provenance",
            fit.provenance,
            bool(fit.provenance)
            and (fit.fit_error is not None or fit.provenance.startswith("derived")),
        )
