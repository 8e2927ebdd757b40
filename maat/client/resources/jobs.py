"""Jobs: as they are declared, how they fare, and why."""

from __future__ import annotations

from typing import Literal, TypedDict

JobState = Literal[
    "submitted",
    "profiling",
    "pending",
    "starting",
    "running",
    "restarting",
    "paused",
    "preempted",
    "succeeded",
    "failed",
    "cancelled",
]

WorkloadKind = Literal["training", "batch-inference", "latency-inference"]


class JobBody(TypedDict, total=False):
    """What is asked of a new job. `name` and `model` are required; the rest has defaults."""

    name: str
    model: str
    cluster_id: str | None
    adaptivity: Literal["rigid", "strong-scaling", "adaptive"]
    gpu_count: int | None
    min_gpus: int
    max_gpus: int | None
    batch_size: int | None
    max_batch_size: int | None
    work_scale: float
    workload_kind: WorkloadKind
    promised_seconds: float | None
    preemptible: bool
    gpu_types: list[str] | None
    external_id: str | None


class Batch(TypedDict):
    total_batch_size: int
    per_gpu_batch_size: int
    accumulation_steps: int


class JobAllocation(TypedDict):
    gpu_type: str
    gpu_count: int
    node_count: int
    gpus: list[int]
    batch: Batch | None


class Reason(TypedDict):
    code: str
    sentence: str
    evidence: dict[str, float | int | str | None]
    as_of_round: int | None


class Job(TypedDict):
    id: str
    name: str
    model: str
    state: JobState
    owner: str
    tenant: str
    cluster_id: str
    adaptivity: str
    gpu_count: int | None
    min_gpus: int
    max_gpus: int | None
    batch_size: int | None
    max_batch_size: int | None
    work_scale: float
    workload_kind: WorkloadKind
    promised_seconds: float | None
    preemptible: bool
    gpu_types: list[str] | None
    external_id: str | None
    submitted_at: str
    started_at: str | None
    finished_at: str | None
    progress: float
    remaining_seconds: float | None
    wait_seconds: float
    gpu_hours: float
    restarts: int
    goodput: float | None
    allocation: JobAllocation | None
    reason: Reason | None
    cancel_requested: bool
    version: int


class AllocationSpan(TypedDict):
    """A stretch of a job's life with the same GPUs; `to_at` is None while it lasts."""

    round_number: int
    from_at: str
    to_at: str | None
    gpu_type: str
    gpu_count: int
    node_count: int
    gpus: list[int]
    total_batch_size: int | None
    per_gpu_batch_size: int | None
    accumulation_steps: int | None


class JobEvent(TypedDict):
    id: int
    at: str
    kind: str
    state: str | None
    round_number: int | None
    data: dict[str, object]


class Start(TypedDict):
    """What a round would give a job."""

    gpu_type: str
    gpu_count: int
    node_count: int


class Remedy(TypedDict):
    """Something that the job's owner could do. `changes`: fields of the job to submit instead; `starts_with`: what a tried round gave it."""

    code: str
    sentence: str
    field: str | None
    changes: dict[str, object]
    starts_with: Start | None


class Explanation(TypedDict):
    primary: Reason
    reasons: list[Reason]
    remedies: list[Remedy]
    as_of_round: int | None


class BatchItem(TypedDict):
    """What became of one job of a batch: the job, or why it was refused."""

    index: int
    status: int
    job: Job | None
    errors: list[dict[str, object]]


class BatchResult(TypedDict):
    items: list[BatchItem]
    created: int
    refused: int
