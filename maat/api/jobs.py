"""Jobs: what is asked of a new one, how one stands, what it held, and why."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, SkipValidation
from typing_extensions import TypedDict

from maat.api.fields import BatchSize, Body, GpuCount, GpuTypeName, Name, Timestamp
from maat.vocabulary import MAX_PRIORITY

MAX_BATCH_JOBS = 1000
MAX_DEMO_JOBS = 200
MAX_WORK = 1000.0


class JobBody(Body):
    """A new job.

    An adaptive job leaves GPU count and batch size to the scheduler; `gpu_count` is then what
    policies use that do not choose.
    """

    name: Name = Field(title="Name")
    model: Annotated[str, Field(min_length=1, max_length=100)] = Field(
        title="Model", description="A name of GET /models."
    )
    cluster_id: Annotated[str, Field(max_length=200)] | None = Field(
        default=None, description="Id or name; the first cluster where absent."
    )
    adaptivity: Literal["rigid", "strong-scaling", "adaptive"] = Field(
        default="adaptive", title="What Maat may vary"
    )
    gpu_count: GpuCount | None = Field(default=None, title="GPUs")
    min_gpus: GpuCount = Field(default=1, title="At least (GPUs)")
    max_gpus: GpuCount | None = Field(default=None, title="At most (GPUs)")
    batch_size: BatchSize | None = Field(
        default=None, title="Batch size (samples)", description="Total, in samples."
    )
    max_batch_size: BatchSize | None = Field(default=None, title="Largest batch size (samples)")
    work_scale: Annotated[float, Field(gt=0, le=MAX_WORK)] = Field(
        default=1.0,
        title="Work (× standard training)",
        description="Share of the model's standard training.",
    )
    gpu_types: Annotated[list[GpuTypeName], Field(min_length=1, max_length=50)] | None = Field(
        default=None,
        title="GPU types",
        description="Those that it may use; all on which the model runs where absent.",
    )
    preemptible: bool = Field(default=True, title="May be preempted")
    priority: Annotated[int, Field(ge=-MAX_PRIORITY, le=MAX_PRIORITY)] = Field(
        default=0,
        title="Priority",
        description="Under fifo the job of higher priority goes first; other policies ignore it.",
    )
    external_id: Name | None = Field(
        default=None, title="Your own id", description="Your own id, unique in your tenant."
    )
    workload_kind: Literal["training", "batch-inference", "latency-inference"] = Field(
        default="training",
        title="What it does",
        description="What counts as goodput: effective samples/s; samples/s; 1 or 0 for a promised "
        "latency kept or not.",
    )
    promised_seconds: Annotated[float, Field(gt=0, le=1_000_000)] | None = Field(
        default=None,
        title="Promised for a batch (s)",
        description="Of latency-bound inference alone: in which it answers `batch_size` requests "
        "that it serves together.",
    )


class BatchBody(Body):
    """Many jobs. `atomic`: all or none; `partial`: those that can be used."""

    jobs: Annotated[list[SkipValidation[JobBody]], Field(min_length=1, max_length=MAX_BATCH_JOBS)]
    mode: Literal["atomic", "partial"] = "atomic"


class DemoBody(Body):
    """Jobs drawn by chance, to try a cluster with."""

    cluster_id: Annotated[str, Field(max_length=200)] | None = None
    count: Annotated[int, Field(ge=1, le=MAX_DEMO_JOBS)] = 10
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = Field(
        default=None, description="The same seed adds the same jobs."
    )


class BatchPlanOut(TypedDict):
    """total = replicas x per-GPU x (accumulation + 1)."""

    total_batch_size: int
    per_gpu_batch_size: int
    accumulation_steps: int


class AllocationOut(TypedDict):
    """What a job holds now."""

    gpu_type: str
    gpu_count: int
    node_count: int
    gpus: list[int]
    batch: BatchPlanOut | None


class ReasonOut(TypedDict):
    """Why it has what it has: the most structural reason that is true, with the numbers behind it."""

    code: str
    sentence: str
    evidence: dict[str, Any]
    as_of_round: int | None


class JobOut(TypedDict):
    """A job: what was asked for and how it stands, as of the latest round."""

    id: str
    name: str
    model: str
    cluster_id: str
    state: str
    owner: str
    tenant: str
    adaptivity: str
    gpu_count: int | None
    min_gpus: int
    max_gpus: int | None
    batch_size: int | None
    max_batch_size: int | None
    work_scale: float
    workload_kind: str
    promised_seconds: float | None
    preemptible: bool
    gpu_types: list[str] | None
    priority: int
    external_id: str | None
    submitted_at: Timestamp
    started_at: Timestamp | None
    finished_at: Timestamp | None
    progress: Annotated[float, Field(description="Share of its work that is done, 0 to 1.")]
    remaining_seconds: Annotated[
        float | None, Field(description="At its present goodput; null while it has none.")
    ]
    wait_seconds: Annotated[
        float, Field(description="From submission to its first GPU, or to now.")
    ]
    gpu_hours: float
    restarts: int
    goodput: Annotated[float | None, Field(description="Effective samples per second.")]
    allocation: AllocationOut | None
    reason: ReasonOut
    cancel_requested: bool
    version: int


class JobPage(TypedDict):
    """`state_counts` and `total` follow the same filters as the rows."""

    items: list[JobOut]
    next_cursor: Annotated[
        str | None,
        Field(description="Pass it as `cursor` for the next page; null on the last."),
    ]
    state_counts: dict[str, int]
    total: Annotated[int | None, Field(description="Only with count=exact.")]


class BatchItem(TypedDict):
    """What became of one job of a batch: `status` as it would have been by itself, with the job or
    the problem."""

    index: int
    status: int
    job: JobOut | None
    errors: list[dict[str, Any]]


class BatchOut(TypedDict):
    """What became of a batch."""

    items: list[BatchItem]
    created: int
    refused: int


class AllocationSpanOut(TypedDict):
    """A stretch of a job's life with the same allocation; `to_at` is null while it lasts."""

    round_number: int
    from_at: Timestamp
    to_at: Timestamp | None
    gpu_type: str
    gpu_count: int
    node_count: int
    gpus: list[int]
    total_batch_size: int | None
    per_gpu_batch_size: int | None
    accumulation_steps: int | None


class JobEventOut(TypedDict):
    """Something that happened to a job."""

    id: int
    at: Timestamp
    kind: str
    state: str | None
    round_number: int | None
    data: dict[str, Any]


class StartOut(TypedDict):
    """What a round would give the job."""

    gpu_type: str
    gpu_count: int
    node_count: int


class Remedy(TypedDict):
    """Something that its owner could do: `field` of the job to change, `code` of the way.

    A job is not changed: cancel it and submit it again with `changes`. A round was tried with them
    on the cluster as it stands.
    """

    code: str
    sentence: str
    field: str | None
    changes: Annotated[
        dict[str, Any],
        Field(
            description="Fields of the job to submit instead, by name; null leaves one out.",
        ),
    ]
    starts_with: Annotated[StartOut | None, Field(description="What the tried round gave it.")]


class ExplanationOut(TypedDict):
    """Why a job has what it has, and what its owner can do."""

    primary: ReasonOut
    reasons: list[ReasonOut]
    remedies: list[Remedy]
    as_of_round: int | None
