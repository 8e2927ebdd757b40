"""Previews of rounds: what the next round would do after a change of the cluster."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from maat.api.clusters import MAX_NODES, JobsPerGpu
from maat.api.fields import (
    NO_BOUND,
    Body,
    LeastStay,
    MostMoves,
    Name,
    Parameters,
    RoundSeconds,
    Timestamp,
)
from maat.api.operations import OperationState
from maat.api.simulations import Interference

MOST_PREVIEWED_JOBS = 500

Fate = Literal["start", "resume", "rescale", "migrate", "preempt", "keep", "wait"]


class RoundPreviewBody(Body):
    """What to change, as a PATCH of the cluster would. Fields left out stay as they are.

    Another policy brings its own placer unless one is named. A new policy or placer begins with its
    default parameters.
    """

    policy: Annotated[str, Field(max_length=100)] | None = None
    policy_parameters: Parameters | None = None
    placer: Annotated[str, Field(max_length=100)] | None = None
    placer_parameters: Parameters | None = None
    round_seconds: RoundSeconds | None = None
    jobs_per_gpu: JobsPerGpu | None = None
    interference: Interference | None = None
    least_stay_seconds: LeastStay | None = Field(default=None, description=NO_BOUND)
    most_moves_per_hour: MostMoves | None = Field(default=None, description=NO_BOUND)
    drained_nodes: Annotated[list[Name], Field(max_length=MAX_NODES)] = Field(
        default_factory=list, description="Ids or names of nodes that would be drained as well."
    )


class JobFateOut(TypedDict):
    """What a round does to a job, and what the job holds after it; null and 0 if nothing."""

    fate: Fate
    gpu_type: str | None
    gpu_count: int


class PreviewedJobOut(TypedDict):
    """A job, what it holds now, and what either round does to it."""

    job_id: Annotated[
        str,
        Field(description="For another tenant's job, a key of this answer such as `other-1`."),
    ]
    job_name: str
    tenant: str | None
    gpu_type: str | None
    gpu_count: int
    as_it_stands: JobFateOut
    with_change: JobFateOut


class RoundSideOut(TypedDict):
    """One of the two rounds: what decides, and what follows.

    `starts` and `stops` count jobs that get their first GPUs, or lose all; `resumes` those that go
    on after a stop; `resizes` those whose GPU count changes; `moves` those that get other GPUs.
    `interference`: of jobs on one GPU, as the cluster would declare it; null: none is shared.
    `restarts`: running jobs that would save, stop and start again: `resizes` and `moves`.
    `jobs_waiting`: those that no round considers yet among them (`jobs_not_considered`).
    `seconds`: CPU seconds of deciding and placing. `notes`: what policy and placer lack or do not
    use on this cluster.
    """

    policy: str
    policy_parameters: dict[str, Any]
    placer: str
    placer_parameters: dict[str, Any]
    round_seconds: float
    jobs_per_gpu: int
    interference: str | float | None
    gpus_in_use: int
    gpus_by_type: dict[str, int]
    jobs_with_gpus: int
    jobs_waiting: int
    starts: int
    resumes: int
    stops: int
    resizes: int
    moves: int
    restarts: int
    seconds: float
    notes: list[str]


def sharing_words(side: RoundSideOut) -> str:
    """Return `1 job`, or `2 jobs, slowdown synthetic`: what may run on one GPU."""
    if side["jobs_per_gpu"] == 1:
        return "1 job"
    declared = side["interference"]
    slowdown = f"{declared:g}" if isinstance(declared, int | float) else declared
    return f"{side['jobs_per_gpu']} jobs, slowdown {slowdown}"


class PreviewResultOut(TypedDict):
    """Both rounds, played on the same jobs at the same moment, and the jobs that they change.

    `jobs`: first those that the two rounds treat differently; `jobs_left_out`: how many more there
    are. `gpus_in_use`: held now, before either round. `jobs_not_considered`: jobs without GPUs that
    were just submitted, are being profiled or pause after an attempt that failed.
    """

    round_number: int
    at: Timestamp
    gpus_in_use: int
    gpus_in_service: int
    as_it_stands: RoundSideOut
    with_change: RoundSideOut
    jobs_treated_differently: int
    jobs: list[PreviewedJobOut]
    jobs_left_out: int
    jobs_not_considered: int


def not_considered_words(result: PreviewResultOut) -> str | None:
    """Say how many of the jobs that wait neither round considers; None if it is none."""
    many = result["jobs_not_considered"]
    if not many:
        return None
    whose = "1 of the jobs that wait is" if many == 1 else f"{many} of the jobs that wait are"
    return (
        f"{whose} not considered yet by either round: just submitted, being profiled, or pausing "
        "after a failed attempt."
    )


class RoundPreviewOut(TypedDict):
    """A preview. Follow and cancel its operation.

    `cluster_version`: the cluster's when it was asked for: send it as If-Match with the change, and
    the change is refused if somebody else has changed the cluster since. `result` is null until it
    has succeeded; `error` is a problem document if it failed.
    """

    id: str
    cluster_id: str
    operation_id: str
    state: OperationState
    cluster_version: int
    request: dict[str, Any]
    result: PreviewResultOut | None
    message: str
    error: dict[str, Any] | None
    created_at: Timestamp
