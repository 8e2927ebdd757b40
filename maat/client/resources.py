"""The JSON that the service speaks, as types: what it answers and what it is sent. Times are RFC 3339 UTC, durations seconds, shares 0-1.

Unknown fields of an answer are kept and ignored, so that a client outlives additive changes of the service.
"""

from __future__ import annotations

from typing import Generic, Literal, NotRequired, TypedDict, TypeVar

Item = TypeVar("Item")

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


class Page(TypedDict, Generic[Item]):
    """One page of a list. `next_cursor` is None on the last; `total` comes only when it was asked for."""

    items: list[Item]
    next_cursor: str | None
    total: NotRequired[int | None]
    state_counts: NotRequired[dict[str, int]]


# ---- who and how ------------------------------------------------------------------------------------------------------------------


class WorkerHealth(TypedDict):
    state: Literal["ok", "stale", "none"]
    last_round_age_seconds: float | None


class Health(TypedDict):
    status: Literal["ok", "degraded"]
    version: str
    database: str
    checked_seconds_ago: float
    worker: WorkerHealth
    time: str


class Me(TypedDict):
    user: str
    tenant: str
    role: str
    permissions: list[str]


class Parameter(TypedDict):
    """One knob of a policy or placer: type, default, range, and where its value comes from."""

    name: str
    type: str
    default: object
    minimum: float | None
    maximum: float | None
    choices: list[str] | None
    unit: str | None
    help: str
    source: str | None


class Described(TypedDict):
    """A policy or placer in the registry."""

    name: str
    title: str
    summary: str
    round_seconds: NotRequired[float | None]
    parameters: list[Parameter]


# ---- models -----------------------------------------------------------------------------------------------------------------------


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


# ---- clusters ---------------------------------------------------------------------------------------------------------------------


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


# ---- jobs -------------------------------------------------------------------------------------------------------------------------


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


# ---- rounds -----------------------------------------------------------------------------------------------------------------------


class RoundSummary(TypedDict):
    number: int
    at: str
    active_jobs: int
    running_jobs: int
    pending_jobs: int
    gpus_used: int
    gpus_total: int
    changes: int
    policy: str
    placer: str
    status: str
    method: str
    objective: float | None
    bound: float | None
    gap: float | None
    fallback: bool
    message: str
    solve_seconds: float | None
    policy_seconds: float
    place_seconds: float
    prices: dict[str, float | None]
    gpus_by_type: dict[str, int]
    capacity_by_type: dict[str, int]


class RoundConfiguration(TypedDict):
    gpu_type: str
    gpu_count: int
    node_count: int


class RoundPairs(TypedDict):
    """The feasible cells of the goodput matrix: row `job`, column `column`, effective samples/s, and the policy's utility.

    Of another tenant's job there is the chosen cell alone, without its goodput.
    """

    job: list[int]
    column: list[int]
    goodput: list[float | None]
    utility: list[float] | None


class RoundRecord(TypedDict):
    """`others`: rows of other tenants' jobs, whose ids are keys of this answer."""

    round: int
    at_seconds: float
    job_ids: list[str]
    job_names: list[str]
    configurations: list[RoundConfiguration]
    pairs: RoundPairs
    chosen: list[int | None]
    grants: dict[str, dict[str, object]]
    reasons: dict[str, Reason]
    report: dict[str, object]
    others: list[int]


class Round(RoundSummary):
    record: RoundRecord | None
