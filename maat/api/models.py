"""Models of the catalog, and the goodput that they reach."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict


class FitErrorOut(TypedDict):
    """|predicted / measured - 1| of step times over all measured points."""

    median: float
    p95: float


class ModelOnTypeOut(TypedDict):
    gpu_type: str
    smallest_per_gpu_batch_size: int
    largest_per_gpu_batch_size: int
    gpus_per_replica: int
    throughput_parameters: dict[str, float]
    fit_error: Annotated[
        float | None, Field(description="Median; null if the row is derived, not fitted.")
    ]
    fit_errors: FitErrorOut | None
    provenance: str


class ModelOut(TypedDict):
    """A model that jobs can train.

    `work`: effective samples of its standard training. `noise_scale_curve`: [progress, phi in
    samples].
    """

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


class GoodputPoint(TypedDict):
    """The best batch plan on this many GPUs: goodput = throughput x efficiency."""

    gpu_count: int
    node_count: int
    goodput: Annotated[float, Field(description="Effective samples per second.")]
    throughput: Annotated[float, Field(description="Samples per second.")]
    efficiency: Annotated[
        float,
        Field(description="Worth of a sample relative to one at the initial batch size, 0 to 1."),
    ]
    step_seconds: float
    total_batch_size: int
    per_gpu_batch_size: int
    accumulation_steps: int


class GoodputSeries(TypedDict):
    gpu_type: str
    points: list[GoodputPoint]


class GoodputOut(TypedDict):
    model: str
    series: list[GoodputSeries]
