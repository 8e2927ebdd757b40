"""Clusters: their nodes and GPUs, what they did over time, and reservations."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class NodeBody(TypedDict):
    gpu_type: str
    gpu_count: int
    name: NotRequired[str]
    count: NotRequired[int]


class Node(TypedDict):
    id: str
    name: str
    gpu_type: str
    gpu_count: int
    memory_gib: float | None
    drained_gpus: list[int]
    version: int


class ClusterBody(TypedDict, total=False):
    name: str
    nodes: list[NodeBody]
    shape: str
    policy: str
    policy_parameters: dict[str, object]
    placer: str
    round_seconds: float
    speed: float


class Cluster(TypedDict):
    id: str
    name: str
    policy: str
    placer: str
    round_seconds: float
    speed: float
    paused: bool
    now: str
    version: int


class GpuCell(TypedDict):
    """One GPU now: where it is (`index`: on its node), of which type, and which job holds it: of another tenant's, a key of this answer."""

    gpu: int
    node: str
    index: int
    gpu_type: str
    drained: bool
    job_id: str | None
    job_name: str | None
    tenant: str | None


class NodeRoom(TypedDict):
    """What is free on a node."""

    node: str
    gpu_type: str
    gpu_count: int
    free_gpus: int


class ClusterState(TypedDict):
    """Which job holds which GPU, as of the latest round."""

    now: str
    round_number: int | None
    as_of: str | None
    gpus: list[GpuCell]
    capacity_by_type: dict[str, int]
    used_by_type: dict[str, int]
    free_by_type: dict[str, int]
    free_gpus_by_node: list[NodeRoom]
    largest_free_on_one_node: dict[str, int]


class Steps(TypedDict):
    """Values that hold from their time to the next."""

    at: list[str]
    value: list[float]


class TimelineSeries(TypedDict):
    gpus_used_by_type: dict[str, Steps]
    capacity_by_type: dict[str, Steps]
    running_jobs: Steps
    pending_jobs: Steps


class Timeline(TypedDict):
    """What followed round by round, thinned by the service."""

    series: TimelineSeries
    points: int
    rounds_per_point: int


class ReservationBody(TypedDict, total=False):
    """GPUs that everybody but the holder leaves free. `gpu_type`, `gpu_count` and one of `tenant` and `job_id` are required; times are the
    cluster's own."""

    gpu_type: str
    gpu_count: int
    tenant: str | None
    job_id: str | None
    start_at: str | None
    end_at: str | None


class Reservation(TypedDict):
    """Of another tenant `tenant` is None, and `job_id` a key of the answer."""

    id: str
    cluster_id: str
    gpu_type: str
    gpu_count: int
    tenant: str | None
    job_id: str | None
    start_at: str
    end_at: str | None
    state: Literal["upcoming", "active", "over"]
    created_at: str
