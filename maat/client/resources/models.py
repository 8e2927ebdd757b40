"""Models of the catalog, and the goodput to expect of them."""

from __future__ import annotations

from typing import TypedDict


class ModelOnType(TypedDict):
    gpu_type: str
    largest_per_gpu_batch_size: int
    gpus_per_replica: int
    throughput_parameters: dict[str, float]
    fit_error: float | None
    provenance: str


class Model(TypedDict):
    name: str
    title: str
    dataset: str
    initial_batch_size: int
    max_batch_size: int
    work: float
    epochs: float | None
    restart_seconds: float
    gpu_types: list[ModelOnType]
    noise_scale_curve: list[list[float]]


class GoodputPoint(TypedDict):
    gpu_count: int
    node_count: int
    goodput: float
    throughput: float
    efficiency: float
    step_seconds: float
    total_batch_size: int
    per_gpu_batch_size: int
    accumulation_steps: int


class GoodputSeries(TypedDict):
    gpu_type: str
    points: list[GoodputPoint]


class GoodputPreview(TypedDict):
    model: str
    series: list[GoodputSeries]
