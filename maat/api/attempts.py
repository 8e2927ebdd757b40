"""Attempts: the lives of a job's processes, and what the agent in them reports."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from maat.api.fields import BatchSize, Body, GpuTypeName, Timestamp
from maat.vocabulary import LARGEST_COUNT, LARGEST_INTEGER, MAX_GPUS, AttemptKind

MAX_SECONDS_OF_STEP = 1e5
REPORT_SECONDS, LEAST_REPORT_SECONDS = 30.0, 2.0
MAX_LOG_BYTES = 64 * 1024
MAX_RANKS = 4096  # of one report

AttemptSort = Literal["number", "-number"]
"""Oldest or newest first."""

Count = Annotated[int, Field(ge=0, le=LARGEST_COUNT)]
Replicas = Annotated[int, Field(ge=1, le=MAX_GPUS)]
StepSeconds = Annotated[float, Field(gt=0.0, le=MAX_SECONDS_OF_STEP)]
Samples = Annotated[float, Field(ge=0.0, le=1e15)]


class MeanBody(Body):
    """Times of `steps` steps: their mean, and the sum of squares about it (seconds squared)."""

    mean: StepSeconds
    m2: Annotated[float, Field(ge=0.0, le=1e15)] = 0.0


class PassBody(Body):
    """Steps in one configuration since the last report that was accepted."""

    per_gpu_batch_size: BatchSize
    accumulation_steps: Annotated[int, Field(ge=0, le=100_000)] = 0
    node_count: Replicas
    replica_count: Replicas
    steps: Annotated[int, Field(ge=1, le=LARGEST_INTEGER)]
    step_seconds: MeanBody
    sync_seconds: Annotated[float, Field(ge=0.0, le=MAX_SECONDS_OF_STEP)] = 0.0


class GradientBody(Body):
    """Squared norm and variance of the gradient at the initial batch size `at_batch_size`."""

    square: Annotated[float, Field(ge=0.0, le=1e30)]
    variance: Annotated[float, Field(ge=0.0, le=1e30)]
    steps: Count
    at_batch_size: BatchSize
    preconditioned: bool = False


class ProgressBody(Body):
    """Work done since the job's first start, and since this attempt's processes began."""

    effective_samples: Samples
    steps: Count = 0
    epoch: Count = 0
    total_effective_samples: Samples | None = None
    processed_samples: Samples | None = Field(
        default=None, description="Of this attempt: samples of all its steps."
    )
    gained_samples: Samples | None = Field(
        default=None, description="Of this attempt: the effective samples of these steps."
    )


class RanksBody(Body):
    """Time of a step's part that a rank does alone, until it waits for others; by rank."""

    compute_seconds: Annotated[list[StepSeconds], Field(min_length=2, max_length=MAX_RANKS)]


class CheckpointBody(Body):
    """The newest checkpoint on disk."""

    step: Count
    seconds: Annotated[float, Field(ge=0.0, le=1e6)] = 0.0
    bytes: Count = 0


class MemoryBody(Body):
    """What a GPU had no room for."""

    out_of_memory_at: Annotated[
        BatchSize, Field(description="Samples of one pass on one GPU that were too many.")
    ]


class ReportBody(Body):
    """What rank 0 says: at its start (hello), every 30 s (report), and when it ends (bye)."""

    sequence: Annotated[int, Field(ge=1, le=LARGEST_COUNT)]
    kind: Literal["hello", "report", "bye"]
    incarnation: Annotated[str, Field(min_length=1, max_length=64)] = Field(
        description="Names this life of the agent: two agents with one token are told apart."
    )
    world_size: Replicas
    gpu_type: GpuTypeName
    progress: ProgressBody
    passes: Annotated[list[PassBody], Field(max_length=64)] = Field(default_factory=list)
    gradient: GradientBody | None = None
    ranks: RanksBody | None = None
    checkpoint: CheckpointBody | None = None
    restore_seconds: Annotated[float, Field(ge=0.0, le=1e6)] | None = None
    plan_number: Annotated[int, Field(ge=0, le=LARGEST_INTEGER)] = 0
    loss: float | None = None
    memory: MemoryBody | None = None
    trouble: Annotated[str, Field(max_length=500)] | None = Field(
        default=None,
        description="What is wrong with its checkpoints: none can be written, or one is damaged.",
    )
    finished: bool = Field(default=False, description="All work is done.")
    stepping_seconds: Annotated[float, Field(ge=0.0, le=1e6)] | None = Field(
        default=None, description="Of a profile: the time from its first step on."
    )


class PlanOut(TypedDict):
    """The batch plan to run from the next step on. The highest number counts."""

    number: int
    total_batch_size: int
    per_gpu_batch_size: int
    accumulation_steps: int


class ReportOut(TypedDict):
    """`stop`: the attempt is to save and end. `report_seconds`: until the next report."""

    accepted: int
    plan: PlanOut | None
    stop: bool
    report_seconds: float


class AttemptOut(TypedDict):
    """One life of a job's processes on one allocation."""

    id: str
    kind: AttemptKind
    number: int
    round_number: Annotated[int, Field(description="0: a profile, which no round orders.")]
    state: str
    outcome: Annotated[str | None, Field(description="How it ended; null while it lives.")]
    reason: str
    gpu_type: str
    gpu_count: int
    gpus_by_node: dict[str, list[int]]
    ordered_at: Timestamp
    queued_at: Timestamp | None
    alive_at: Timestamp | None
    running_at: Timestamp | None
    stop_asked_at: Timestamp | None
    stop_reason: str | None
    ended_at: Timestamp | None
    exit_codes: Annotated[
        dict[str, int] | None, Field(description="By rank; negative: the signal that ended it.")
    ]
    progress: Annotated[float | None, Field(description="Effective samples since the first start.")]
    checkpoint_step: int | None
    trouble: Annotated[str | None, Field(description="What is wrong with its checkpoints.")]
    loss: float | None
    last_report_at: Timestamp | None
    stepping_seconds: Annotated[
        float | None, Field(description="Of a profile: the time from its first step on.")
    ]


class LogOut(TypedDict):
    """A part of a rank's log. Bytes that are no UTF-8 are replaced."""

    text: str
    offset: Annotated[int, Field(description="Where the text begins, in bytes.")]
    next_offset: Annotated[int, Field(description="Where the next part begins.")]
    total_bytes: int
    ended: Annotated[bool, Field(description="Whether nothing will come after this text.")]


class StepSampleOut(TypedDict):
    """Measured step times of one configuration."""

    gpu_type: str
    node_count: int
    replica_count: int
    per_gpu_batch_size: int
    accumulation_steps: int
    count: int
    step_seconds: float
    step_deviation: Annotated[float, Field(description="Standard deviation of one step, s.")]
    sync_seconds: float
    last_at: Timestamp


class GradientSampleOut(TypedDict):
    """How much batches of the initial size disagreed, at one moment of the training."""

    at: Timestamp
    progress: Annotated[float, Field(description="Effective samples since the first start.")]
    noise_scale: Annotated[
        float,
        Field(description="Samples: up to about this batch size each sample has its full value."),
    ]
    batch_size: Annotated[int, Field(description="The initial batch size, samples.")]
    steps: Annotated[int, Field(description="Measured steps that it is the mean of.")]
