"""Experiments: auto-scaling and hyper-parameter search (Pollux section 5.4), asked and answered."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field
from typing_extensions import TypedDict

from maat.api.fields import Body, ModelName, Name, Parameters, Timestamp
from maat.api.measurements import UsedOut
from maat.api.operations import OperationState
from maat.api.simulations import (
    CsvTrace,
    GeneratedTrace,
    MeasurementName,
    Seed,
    Share,
    UploadedTrace,
)
from maat.vocabulary import LARGEST_INTEGER

MAX_RENTED_NODES = 256
MAX_RENTED_JOBS = 1_000
MAX_FIXED_SIZES = 12
MAX_WINDOW = 1_440
MAX_TRIALS = 1_000
MAX_AT_A_TIME = 100
MAX_TRIAL_GPUS = 1_024
MAX_TRIAL_BATCH = 1_000_000
MAX_WORK_SCALE = 1_000.0

Cluster = Annotated[str, Field(min_length=1, max_length=10_000)]
RentedTrace = Annotated[GeneratedTrace | CsvTrace | UploadedTrace, Field(discriminator="kind")]


class ExperimentConditions(Body):
    """What experiments of both kinds share."""

    name: Name
    profiles: MeasurementName | None = Field(
        default=None,
        description="The name or id of uploaded profiles: models are these. Default: the catalog.",
    )


class AutoscalingBody(ExperimentConditions):
    """A training, or a workload, on rented nodes under two autoscalers and on fixed numbers.

    Give `model` to train it once, or `trace` to play a workload.
    """

    kind: Literal["autoscaling"] = "autoscaling"
    cluster: Cluster = Field(
        default="t4=16x4", description="All nodes that may be rented, of one kind: type=NODESxGPUS."
    )
    fidelity: Annotated[str, Field(max_length=100)] = "paper"
    model: ModelName | None = None
    trace: RentedTrace | None = None
    policy: Annotated[str, Field(max_length=100)] = Field(
        default="pollux", description="What shares out the rented nodes among the trace's jobs."
    )
    policy_parameters: Parameters = Field(default_factory=dict)
    upper: Share = Field(
        default=2 / 3,
        title="Add nodes above (share of ideal)",
        description="U: share of ideal speed above which nodes are added.",
    )
    lower: Share = Field(
        default=1 / 2,
        title="down to (share of ideal)",
        description="L: share of ideal speed down to which nodes are added; not above U.",
    )
    window: Annotated[int, Field(ge=1, le=MAX_WINDOW)] = Field(
        default=1,
        title="Averaged over (decisions)",
        description="Decisions over which the share of ideal goodput is averaged.",
    )
    give_back_below: Share = Field(
        default=0.0,
        title="Give back below (share of ideal)",
        description="Share of ideal goodput below which nodes are given back; 0: never.",
    )
    fixed_nodes: (
        Annotated[
            list[Annotated[int, Field(le=LARGEST_INTEGER)]], Field(max_length=MAX_FIXED_SIZES)
        ]
        | None
    ) = Field(
        default=None,
        description="Numbers of nodes to compare with. Default: 1, 2, 4, ... and all.",
        examples=[[4, 8, 16]],
    )
    seed: Seed = 0


class TuningBody(ExperimentConditions):
    """A hyper-parameter search twice: with elastic trials, and with trials on static GPUs."""

    kind: Literal["tuning"] = "tuning"
    cluster: Cluster = Field(
        default="a100=2x8", description="GPU types and nodes, such as t4=6x4,a100=2x8."
    )
    fidelity: Annotated[str, Field(max_length=100)] = "pollux-artifact"
    model: ModelName = "cifar10"
    policy: Annotated[str, Field(max_length=100)] = Field(
        default="pollux", description="Of the elastic search; the static one is first come first."
    )
    trials: Annotated[int, Field(ge=1, le=MAX_TRIALS)] = Field(default=100, title="Trials")
    at_a_time: Annotated[int, Field(ge=1, le=MAX_AT_A_TIME)] = Field(
        default=4, title="Trials at a time"
    )
    static_gpus: Annotated[int, Field(ge=1, le=MAX_TRIAL_GPUS)] = Field(
        default=4, title="GPUs of a static trial"
    )
    static_batch_per_gpu: Annotated[int, Field(ge=1, le=MAX_TRIAL_BATCH)] | None = Field(
        default=None,
        title="Batch on each GPU",
        description="Samples of a static trial's batch on each of its GPUs. Default: 128, or as "
        "many as the model trains with.",
    )
    work_scale: Annotated[float, Field(gt=0, le=MAX_WORK_SCALE)] = Field(
        default=1.0,
        title="Trial length (trainings)",
        description="How long a trial trains, in standard trainings of the model.",
    )
    seed: Seed = Field(default=0, title="Seed")


ExperimentBody: TypeAlias = AutoscalingBody | TuningBody
AnyExperimentBody = Annotated[ExperimentBody, Field(discriminator="kind")]


class RentedOut(TypedDict):
    """A run on rented nodes.

    `nodes`: their number, if it was fixed. `seconds`: to the end of the last job;
    `avg_jct_seconds`: of those that finished. `rented`: [second, nodes], `efficiencies`: [second,
    mean statistical efficiency of the jobs that train; null while none does], each until the next.
    """

    run: str
    title: str
    nodes: int | None
    seconds: float
    node_seconds: float
    avg_jct_seconds: float
    efficiency: float
    restarts: int
    unfinished: int
    rented: list[list[float]]
    efficiencies: list[list[float | None]]


class TrialOut(TypedDict):
    """A trial: when it was submitted and ended, its declared score (%), and what it chose."""

    name: str
    submit_seconds: float
    end_seconds: float
    score: float
    settings: dict[str, float]


class SearchOut(TypedDict):
    """A search; `trials` in the order they ended. `top_score`: mean of the best, five at most."""

    run: str
    title: str
    policy: str
    placer: str
    top_score: float
    avg_jct_seconds: float
    makespan_seconds: float
    trials: list[TrialOut]


class ExperimentOut(TypedDict):
    """An experiment, without its runs. `unreadable`: why its request cannot be shown; else null."""

    id: str
    kind: Literal["autoscaling", "tuning"]
    name: str
    operation_id: str
    created_at: Timestamp
    state: OperationState
    unreadable: str | None


class AutoscalingOut(TypedDict):
    """Auto-scaling with the runs that have ended, in the order of the request.

    `request`: as sent; a CSV trace is replaced by its length.
    """

    id: str
    kind: Literal["autoscaling"]
    name: str
    operation_id: str
    created_at: Timestamp
    state: OperationState
    request: dict[str, Any]
    measurements: list[UsedOut]
    runs: list[RentedOut]


class TuningOut(TypedDict):
    """A hyper-parameter search with the searches that have ended. `scores`: how they are made."""

    id: str
    kind: Literal["tuning"]
    name: str
    operation_id: str
    created_at: Timestamp
    state: OperationState
    request: dict[str, Any]
    measurements: list[UsedOut]
    runs: list[SearchOut]
    scores: str


ExperimentDetail: TypeAlias = AutoscalingOut | TuningOut
