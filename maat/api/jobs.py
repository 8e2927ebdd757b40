"""Jobs: requests, states, allocations and explanations."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, SkipValidation
from typing_extensions import TypedDict

from maat.api.commands import CommandBody
from maat.api.fields import BatchSize, Body, GpuCount, GpuTypeName, ModelName, Name, Timestamp
from maat.vocabulary import MAX_PRIORITY

MAX_BATCH_JOBS = 1000
MAX_DEMO_JOBS = 200
MAX_WORK = 1000.0


class JobBody(Body):
    """A new job.

    An adaptive job leaves GPU count and batch size to the scheduler; policies that do not choose
    them use `gpu_count`.
    """

    name: Name = Field(title="Name")
    model: ModelName = Field(title="Model", description="A name of GET /models.")
    cluster_id: Annotated[str, Field(max_length=200)] | None = Field(
        default=None, description="Id or name; default: the first cluster."
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
        description="The types that the job may use; default: all on which the model runs.",
    )
    preemptible: bool = Field(default=True, title="May be preempted")
    priority: Annotated[int, Field(ge=-MAX_PRIORITY, le=MAX_PRIORITY)] = Field(
        default=0,
        title="Priority",
        description="Under fifo, jobs of higher priority go first; other policies ignore it.",
    )
    external_id: Name | None = Field(
        default=None, title="Your own id", description="Your own id, unique in your tenant."
    )
    workload_kind: Literal["training", "batch-inference", "latency-inference"] = Field(
        default="training",
        title="Kind of work",
        description="What counts as goodput: effective samples/s; samples/s; 1 if the latency SLO "
        "is met, else 0.",
    )
    promised_seconds: Annotated[float, Field(gt=0, le=1_000_000)] | None = Field(
        default=None,
        title="Latency SLO of a batch (s)",
        description="Only for latency-bound inference: the time in which it answers a batch of "
        "`batch_size` requests.",
    )
    run: CommandBody | None = Field(
        default=None,
        title="Command",
        description="What the job runs, on a cluster that runs commands. `model` may then be any "
        "name for it, and `batch_size` is the one it was tuned for.",
    )


class BatchBody(Body):
    """Many jobs. `atomic`: all or none; `partial`: the usable ones."""

    jobs: Annotated[list[SkipValidation[JobBody]], Field(min_length=1, max_length=MAX_BATCH_JOBS)]
    mode: Literal["atomic", "partial"] = "atomic"


class DemoBody(Body):
    """Randomly drawn jobs, to try a cluster."""

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
    """Why a job has its allocation: the most structural true reason and its numbers."""

    code: str
    sentence: str
    evidence: dict[str, Any]
    as_of_round: int | None


class JobOut(TypedDict):
    """A job: its request and its state as of the latest round."""

    id: str
    name: str
    model: str
    runs_command: Annotated[bool, Field(description="Whether it has a command, or is played.")]
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
    progress: Annotated[float, Field(description="Share of the work that is done, 0 to 1.")]
    remaining_seconds: Annotated[
        float | None,
        Field(
            description="At the present goodput; null without goodput, or if the work is unknown."
        ),
    ]
    wait_seconds: Annotated[
        float, Field(description="From submission to the first GPU, or until now.")
    ]
    gpu_hours: float
    restarts: int
    goodput: Annotated[float | None, Field(description="Effective samples per second.")]
    allocation: AllocationOut | None
    reason: ReasonOut
    cancel_requested: bool
    version: int


class JobPage(TypedDict):
    """One page of jobs. `state_counts` and `total` use the filters of the rows."""

    items: list[JobOut]
    next_cursor: Annotated[
        str | None,
        Field(description="Pass it as `cursor` for the next page; null on the last."),
    ]
    state_counts: dict[str, int]
    total: Annotated[int | None, Field(description="Only with count=exact.")]


class BatchItem(TypedDict):
    """The result for one job of a batch.

    `status`: as if it had been submitted alone, with the job or the problem.
    """

    index: int
    status: int
    job: JobOut | None
    errors: list[dict[str, Any]]


class BatchOut(TypedDict):
    """The result of a batch."""

    items: list[BatchItem]
    created: int
    refused: int


class AllocationSpanOut(TypedDict):
    """A span of time with the same allocation; `to_at` is null while it lasts."""

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
    """An event of a job."""

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
    """What the owner could do: `field` to change, `code` of the kind of change.

    A job is not changed: cancel it and submit it again with `changes`. They were tried with a round
    on the present cluster.
    """

    code: str
    sentence: str
    field: str | None
    changes: Annotated[
        dict[str, Any],
        Field(
            description="Fields of the job to submit instead, by name; null leaves a field out.",
        ),
    ]
    starts_with: Annotated[StartOut | None, Field(description="What the tried round gave it.")]


class ExplanationOut(TypedDict):
    """Why a job has its allocation, and what its owner can do."""

    primary: ReasonOut
    reasons: list[ReasonOut]
    remedies: list[Remedy]
    as_of_round: int | None
    last_lines: Annotated[
        list[str], Field(description="Of a command that failed: the last lines that it wrote.")
    ]
