"""Beliefs: what Maat has learnt of a job from its reports, and how sure it is."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from maat.api.fields import Timestamp
from maat.vocabulary import PenaltyOrigin

Relative = Field(description="Relative difference between model and measurement, root mean square.")


class PointOut(TypedDict):
    """A modelled step."""

    per_gpu_batch_size: int
    step_seconds: float


class CurveOut(TypedDict):
    """Modelled step times over the batch size, on so many replicas and nodes."""

    node_count: int
    replica_count: int
    points: list[PointOut]


class ParametersOut(TypedDict):
    """The throughput model (Pollux eq. 8-11), in seconds but for gamma.

    A pass over m samples takes alpha_compute + beta_compute m; to synchronise K replicas takes
    alpha + beta (K - 2), across nodes or within one; gamma says how much of it overlaps, from 1
    (nothing) to 10 (nearly all).
    """

    alpha_compute: float
    beta_compute: float
    alpha_across_nodes: float
    beta_across_nodes: float
    alpha_within_node: float
    beta_within_node: float
    gamma: float


class MissedPointOut(TypedDict):
    """A measured configuration from which the model is off by more than a tenth."""

    node_count: int
    replica_count: int
    per_gpu_batch_size: int
    measured_seconds: float
    modelled_seconds: float


class FitOut(TypedDict):
    """What is believed of the job on one GPU type."""

    gpu_type: str
    sample_count: Annotated[int, Field(description="Configurations that were measured.")]
    step_count: Annotated[int, Field(description="Steps that were measured in them.")]
    error: Annotated[float, Relative]
    forecast_error: Annotated[
        float | None,
        Field(
            description="The same of the fit before, for configurations that it had not seen; "
            "null as long as there were none."
        ),
    ]
    fitted_at: Timestamp
    parameters: ParametersOut
    curves: list[CurveOut]
    missed: Annotated[
        list[MissedPointOut],
        Field(description="Measured configurations that it is off from by over 10 %, worst first."),
    ]


class RestartPartOut(TypedDict):
    """One part of a restart: what is believed of it, and from what.

    stop: from the order to stop to the end, with the checkpoint. queue: until the processes live.
    start: until they can train. restore: reading the checkpoint.
    """

    name: Literal["stop", "queue", "start", "restore"]
    seconds: float
    assumed_seconds: Annotated[float, Field(description="Counts as one more measurement.")]
    measured: Annotated[int, Field(description="The newest measurements, at most ten.")]
    deviation: Annotated[float | None, Field(description="Of single measurements, s.")]


class ProfileOut(TypedDict):
    """Profiles of the job on one GPU type: GPU seconds of steps, and of all that is no step."""

    gpu_type: str
    attempts: int
    state: str
    outcome: str | None
    reason: str
    stepping_gpu_seconds: float
    startup_gpu_seconds: float


class GradientOut(TypedDict):
    """How much batches disagree, at the initial batch size."""

    noise_scale: Annotated[
        float,
        Field(description="Samples: up to about this batch size each sample has its full value."),
    ]
    steps: int
    at: Timestamp


class MemoryOut(TypedDict):
    """Samples of one pass that a GPU of this type had no room for: plans take nine tenths."""

    gpu_type: str
    out_of_memory_at: int


class PenaltyOut(TypedDict):
    """What a step across nodes takes over one within a node on a GPU type, as pal weighs it."""

    gpu_type: str
    penalty: float
    origin: Annotated[
        PenaltyOrigin,
        Field(
            description="declared: its owner says so. measured: by steps of the tenant's jobs of "
            "this model. assumed: by nothing; it is 1."
        ),
    ]
    configurations: Annotated[
        int, Field(description="Measured both within a node and across nodes.")
    ]
    steps: Annotated[int, Field(description="Steps that were measured in them.")]


class BeliefOut(TypedDict):
    """What Maat believes of a job."""

    played: Annotated[
        bool,
        Field(
            description="Whether the cluster plays the job by the catalog: no step of it is "
            "measured, and its restart is the catalog's, without parts."
        ),
    ]
    types: list[FitOut]
    gradient: GradientOut | None
    restart_seconds: Annotated[
        float, Field(description="How long rounds believe a restart to take, s.")
    ]
    restart: list[RestartPartOut]
    locality: Annotated[
        list[PenaltyOut],
        Field(description="By GPU type that it may use; none where jobs are played."),
    ]
    profiles: list[ProfileOut]
    memory: list[MemoryOut]
    profiles_ended: Annotated[
        str | None, Field(description="Why it is profiled no further, where profiles failed.")
    ]
