"""Catalog models and goodput previews as the API speaks of them."""

from __future__ import annotations

from pydantic import BaseModel, Field

from maat.models.catalog import CatalogFit, CatalogModel


class FitErrorOut(BaseModel):
    """|predicted / measured - 1| of step times over all measured points."""

    median: float
    p95: float


class ModelOnTypeOut(BaseModel):
    gpu_type: str
    smallest_per_gpu_batch_size: int
    largest_per_gpu_batch_size: int
    gpus_per_replica: int
    throughput_parameters: dict[str, float]
    fit_error: float | None = Field(
        description="Median; null where the row is derived rather than fitted."
    )
    fit_errors: FitErrorOut | None
    provenance: str

    @classmethod
    def of(cls, fit: CatalogFit) -> ModelOnTypeOut:
        errors = (
            None
            if fit.fit_error is None
            else FitErrorOut(median=fit.fit_error.median, p95=fit.fit_error.p95)
        )
        return cls(
            gpu_type=fit.gpu_type,
            smallest_per_gpu_batch_size=fit.smallest_per_gpu_batch_size,
            largest_per_gpu_batch_size=fit.largest_per_gpu_batch_size,
            gpus_per_replica=fit.gpus_per_replica,
            throughput_parameters=fit.throughput_parameters._asdict(),
            fit_error=None if errors is None else errors.median,
            fit_errors=errors,
            provenance=fit.provenance,
        )


class ModelOut(BaseModel):
    """A model that jobs can train. `work`: effective samples of its standard training. `noise_scale_curve`: [progress, phi in samples]."""

    name: str
    title: str
    task: str
    dataset: str
    initial_batch_size: int
    max_batch_size: int
    work: float
    epochs: float
    restart_seconds: float
    gpu_types: list[ModelOnTypeOut]
    noise_scale_curve: list[tuple[float, float]]
    provenance: str

    @classmethod
    def of(cls, model: CatalogModel) -> ModelOut:
        same = {
            name: getattr(model, name)
            for name in cls.model_fields
            if name not in ("gpu_types", "noise_scale_curve")
        }
        return cls(
            **same,
            gpu_types=[ModelOnTypeOut.of(fit) for fit in model.fits.values()],
            noise_scale_curve=list(model.noise_scale_curve),
        )


class GoodputPoint(BaseModel):
    """The best batch plan on this many GPUs: goodput = throughput x efficiency."""

    gpu_count: int
    node_count: int
    goodput: float = Field(description="Effective samples per second.")
    throughput: float = Field(description="Samples per second.")
    efficiency: float = Field(
        description="Worth of a sample relative to one at the initial batch size, 0 to 1."
    )
    step_seconds: float
    total_batch_size: int
    per_gpu_batch_size: int
    accumulation_steps: int


class GoodputSeries(BaseModel):
    gpu_type: str
    points: list[GoodputPoint]


class GoodputOut(BaseModel):
    model: str
    series: list[GoodputSeries]
