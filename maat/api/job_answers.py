"""Jobs as they are answered: states, allocations, events and explanations."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    Field,
)
from typing_extensions import TypedDict

from maat.api.beliefs import PenaltyOut
from maat.api.fields import FieldWarning, Timestamp
from maat.api.forecasts import JobTimesOut
from maat.vocabulary import (
    Doubted,
    PriorityClass,
    SlowdownSource,
)


class BatchPlanOut(TypedDict):
    """total = replicas x per-GPU x (accumulation + 1)."""

    total_batch_size: int
    per_gpu_batch_size: int
    accumulation_steps: int


class SharedWithOut(TypedDict):
    """A job that holds GPUs of this one beside it, now."""

    job_id: Annotated[
        str, Field(description="For another tenant's job, a key of this answer such as `other-1`.")
    ]
    job_name: str
    gpus: Annotated[int, Field(description="How many GPUs both hold.")]
    slowdown: Annotated[
        float | None,
        Field(
            description="How many times longer a step of this job takes beside that one, as the "
            "next decision believes; null if nothing is known of the two."
        ),
    ]
    slowdown_source: SlowdownSource | None


class AllocationOut(TypedDict):
    """What a job holds now."""

    gpu_type: str
    gpu_count: int
    node_count: int
    gpus: list[int]
    batch: BatchPlanOut | None
    shared_with: Annotated[
        list[SharedWithOut], Field(description="Jobs that hold some of these GPUs too.")
    ]


class ReasonOut(TypedDict):
    """Why a job has its allocation: the most structural true reason and its numbers."""

    code: str
    sentence: str
    evidence: dict[str, Any]
    as_of_round: int | None


class FlagOut(TypedDict):
    """What is unlikely of what the job's agent reported.

    While it stands, the job is believed less: docs/operations.md, What Maat trusts.
    """

    kind: Doubted
    sentence: str
    said: Annotated[float, Field(description="By its agent or its owner, in `unit`.")]
    seen: Annotated[float, Field(description="By Maat, or usual, in `unit`.")]
    unit: str
    attempt: int
    at: Timestamp
    dismissed_at: Annotated[Timestamp | None, Field(description="Null while it stands.")]
    dismissed_by: str | None


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
    priority_class: PriorityClass
    weight: float
    least_stay_seconds: float | None
    most_moves_per_hour: int | None
    labels: dict[str, str]
    after: Annotated[list[str], Field(description="Jobs that must succeed before it starts.")]
    deadline: Timestamp | None
    deadline_outlook: Annotated[
        Literal["on-time", "late", "unknown", "met", "missed"] | None,
        Field(
            description="By its present goodput; null without a deadline, or if it ended without "
            "success."
        ),
    ]
    deadline_seconds_late: Annotated[
        float | None, Field(description="By how much it is, or will be, missed.")
    ]
    array_id: Annotated[str | None, Field(description="Of an array of jobs: what finds them all.")]
    array_index: int | None
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
        float, Field(description="From submission to the first GPU, or until now, less pauses.")
    ]
    gpu_hours: Annotated[
        float,
        Field(
            description="GPUs held x hours, shared ones whole; of a GPU that k jobs share, usage, "
            "costs, shares and reports count 1/k for each."
        ),
    ]
    restarts: int
    forecast: Annotated[
        JobTimesOut | None,
        Field(description="When it starts and ends; null if it has ended, is paused, or has none."),
    ]
    goodput: Annotated[float | None, Field(description="Effective samples per second.")]
    allocation: AllocationOut | None
    reason: ReasonOut
    warnings: list[FieldWarning]
    flags: Annotated[
        list[FlagOut], Field(description="What is unlikely of its reports, oldest first.")
    ]
    cancel_requested: bool
    pause_requested: bool
    paused_by: Annotated[str | None, Field(description="Who asked for the pause.")]
    paused_at: Annotated[
        Timestamp | None, Field(description="Since when it is paused; null before and after.")
    ]
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


class MoveWorthOut(TypedDict):
    """What the restart that began a span cost, and what it brought. Gains of others do not count.

    Both allocations are priced at the noise scale of the move: by the throughput that was measured
    on each, and by what samples were worth at its batch size then.
    """

    outcome: Annotated[
        Literal["paid", "pending", "no-faster", "ended-early", "unknown"],
        Field(
            description="paid: the job is ahead of where it would be on the GPUs before. pending: "
            "it still may be. no-faster: it never will. ended-early: it would have been."
        ),
    ]
    unknown: Annotated[
        Literal["held-none", "not-counted", "no-noise-scale"] | None,
        Field(
            description="Why nobody knows: it held no GPUs before, nothing was counted, or batch "
            "sizes differ and no noise scale was kept."
        ),
    ]
    stood_seconds: Annotated[float, Field(description="Until it ran again.")]
    ran_seconds: float
    before_samples_per_second: float | None
    after_samples_per_second: Annotated[
        float | None, Field(description="In samples at the batch size before.")
    ]
    net_seconds: Annotated[
        float | None, Field(description="Ahead, in seconds of the GPUs before; negative: behind.")
    ]
    pays_after_seconds: Annotated[
        float | None, Field(description="Of running; null if it never pays, or nobody knows.")
    ]


class AllocationSpanOut(TypedDict):
    """A span of time with the same allocation; `to_at` is null while it lasts.

    Until `running_at` it started or restarted. Samples are those of the span, until now if it
    lasts; null where nobody counted them. `move`: what the restart that began it was worth; null
    if none did.
    """

    round_number: int
    from_at: Timestamp
    to_at: Timestamp | None
    running_at: Annotated[Timestamp | None, Field(description="Null while it starts.")]
    for_profile: Annotated[bool, Field(description="Whether the job was only measured.")]
    processed_samples: float | None
    effective_samples: Annotated[
        float | None, Field(description="What the processed samples are worth at M0.")
    ]
    lost_gpu_seconds: Annotated[
        float | None, Field(description="Of work that was done again, since no checkpoint had it.")
    ]
    gpu_type: str
    gpu_count: int
    node_count: int
    gpus: list[int]
    total_batch_size: int | None
    per_gpu_batch_size: int | None
    accumulation_steps: int | None
    noise_scale: Annotated[
        float | None,
        Field(description="Of its gradients at the beginning, in samples; null if not known."),
    ]
    move: MoveWorthOut | None


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


class RunsOnOut(TypedDict):
    """A GPU type on which a job could run: the fewest GPUs for it, and all of the cluster."""

    gpu_type: str
    least_gpus: int
    cluster_gpus: int


class QueueOut(TypedDict):
    """A place among the jobs that wait on a cluster now, of all tenants, from 1.

    By priority, then by submission. A policy may go by other things.
    """

    waiting: int
    position: int


class DryRunOut(TypedDict):
    """What a submission would make. Nothing was stored."""

    dry_run: bool
    cluster_id: str
    declared: Annotated[
        dict[str, Any], Field(description="All fields with their defaults; of secrets, the names.")
    ]
    runs_on: list[RunsOnOut]
    forecast: Annotated[
        Literal["starts", "waits", "not-tried"],
        Field(description="What the next round would do, by a round that was not carried out."),
    ]
    starts_with: StartOut | None
    warnings: list[FieldWarning]
    waiting: Annotated[int, Field(description="Jobs that wait on the cluster now, of all tenants.")]
    position: Annotated[
        int,
        Field(
            description="Its place among them, from 1: by priority, then by submission. A policy "
            "may go by other things."
        ),
    ]
    sentence: str


class Remedy(TypedDict):
    """What could be changed: `field` to change, `code` of the kind of change.

    Changes were tried with a round on the present cluster. `action` says how to make them:
    `change-job` is a PATCH of the job with `changes`, `change-tenant` a PATCH of its tenant;
    `resume` and `release` are actions of the job, or of the one in `targets`; `restore-nodes` is
    the action `restore` of each node in `targets`; for `wait` no request
    does it.
    """

    code: str
    action: Literal["change-job", "change-tenant", "restore-nodes", "resume", "release", "wait"]
    sentence: str
    field: str | None
    changes: Annotated[
        dict[str, Any], Field(description="New values by field; null leaves a field out.")
    ]
    before: Annotated[dict[str, Any], Field(description="The present values of these fields.")]
    targets: Annotated[
        list[str], Field(description="Ids of what it acts on; empty for this job or its tenant.")
    ]
    permitted: Annotated[bool, Field(description="Whether who asks may do it.")]
    starts_with: Annotated[StartOut | None, Field(description="What the tried round gave it.")]


class ConfigurationOut(TypedDict):
    """GPUs that a job has or could have, as the round that decided saw them.

    `value`, `price`: in the policy's objective, of this for the job and of the GPUs; null where the
    policy has none. `limit`: what kept the job from it. `free_gpus`: of its type after the round.
    """

    gpu_type: str
    gpu_count: int
    goodput: Annotated[
        float | None, Field(description="Effective samples per second, as the round believed.")
    ]
    measured_goodput: Annotated[
        float | None,
        Field(
            description="As measured on such GPUs, at the same noise scale; null where none was."
        ),
    ]
    value: float | None
    price: float | None
    limit: str | None
    free_gpus: int | None
    move: Annotated[
        MoveOut | None,
        Field(description="Of a move to it; null for what it has, and where no pace is known."),
    ]


class MoveOut(TypedDict):
    """What a move would cost, and when it would pay."""

    restart_seconds: float
    samples_not_trained: Annotated[
        float | None, Field(description="Effective samples that the restart costs, now.")
    ]
    pays_after_seconds: Annotated[
        float | None,
        Field(
            description="From its begin; null if it never pays. By what was measured on both, if "
            "it was; else as the round believed."
        ),
    ]
    remaining_seconds: Annotated[
        float | None, Field(description="Of the job, without the move; null if not known.")
    ]


class ChoiceOut(TypedDict):
    """Why a job has this GPU type and count: what it has, and what else it could have.

    `alone`: what the policy would give it if it were alone.
    """

    sentences: list[str]
    chosen: ConfigurationOut
    runner_up: ConfigurationOut | None
    alone: ConfigurationOut | None


class BlockerOut(TypedDict):
    """A job that holds GPUs that a waiting one needs. Those of other tenants are anonymous.

    `stay`: why it stays; `kept` jobs could be moved, and the policy does not.
    """

    job: str
    name: Annotated[str | None, Field(description="Null of another tenant's job.")]
    gpu_type: str
    gpu_count: int
    gpus: list[int]
    nodes: list[str]
    stay: Literal["not-preemptible", "starting", "restarting", "profiled", "must-stay", "kept"]
    ends_p50_at: Annotated[Timestamp | None, Field(description="By its forecast, if it has one.")]
    ends_p90_at: Timestamp | None
    sentence: str


class ExplanationOut(TypedDict):
    """Why a job has its allocation, and what can be done.

    `reasons`: all that hold, the deciding one first. It stays readable when the job has ended.
    """

    primary: ReasonOut
    reasons: list[ReasonOut]
    waited: Annotated[
        ReasonOut | None,
        Field(description="Why it last waited; null if it never did, or waits now."),
    ]
    ran: Annotated[
        ReasonOut | None, Field(description="Of a job that has ended: why it had what it had.")
    ]
    choice: Annotated[
        ChoiceOut | None, Field(description="Of a job that holds GPUs, or held them at its end.")
    ]
    locality: Annotated[
        PenaltyOut | None,
        Field(
            description="Of a job that holds GPUs: what a step across nodes costs it, if the "
            "placer weighs that."
        ),
    ]
    queue: Annotated[
        QueueOut | None,
        Field(description="Its place among the jobs that wait; null if it does not."),
    ]
    blockers: Annotated[
        list[BlockerOut],
        Field(description="Jobs that hold the GPUs that it waits for, most GPUs first."),
    ]
    remedies: list[Remedy]
    as_of_round: int | None
    last_lines: Annotated[
        list[str], Field(description="Of a command that failed: the last lines that it wrote.")
    ]
