"""Simulations: what is simulated under which conditions, and what came of it."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator
from typing_extensions import TypedDict

from maat.api.fields import Body, GpuCount, GpuTypeName, Name, Parameters, RoundSeconds, Timestamp
from maat.api.measurements import UsedOut
from maat.api.operations import OperationState
from maat.vocabulary import (
    LEAST_MTBF_HOURS,
    MAX_HOURS,
    MAX_JOBS_PER_GPU,
    MAX_SECONDS,
    MAX_SLOWDOWN,
    SYNTHETIC,
    FairnessRule,
    ProfilingMode,
    ScoreDraw,
    TuningRule,
)

MAX_RUNS = 200  # traces x entries of `runs`
MAX_TRACES = 12
MAX_SIMULATED_JOBS = 20_000
MAX_SIMULATED_GPUS = 20_000
MAX_CHOSEN_JOBS = 12  # whose allocations one answer holds
MAX_RESERVATIONS = 64
MAX_FAILURES_PER_HOUR = 1000
MAX_TUNED_GPUS = 1024
MAX_PENALTIES = 1000  # more than there are models

Seed = Annotated[int, Field(ge=0, le=2**31 - 1)]
Share = Annotated[float, Field(ge=0, le=1)]


def _told_once(remedy: str) -> WrapValidator:
    """One refusal at the field itself, instead of one for each of the types that it is not."""

    def check_all(value: Any, check: ValidatorFunctionWrapHandler) -> Any:
        try:
            return check(value)
        except ValidationError:
            raise ValueError(remedy) from None

    return WrapValidator(check_all)


# The name or the id of uploaded measurements.
MeasurementName = Annotated[str, Field(min_length=1, max_length=400)]
Interference = Annotated[
    MeasurementName | Annotated[float, Field(ge=1, le=MAX_SLOWDOWN)],
    _told_once(
        f"Give '{SYNTHETIC}', a slowdown from 1 to {MAX_SLOWDOWN:g}, or the name of uploaded measurements."
    ),
]
# That it is at least 1, the library checks.
Factor = Annotated[float, Field(json_schema_extra={"minimum": 1})]
LocalityPenalty = Annotated[
    Factor | Annotated[dict[str, Factor], Field(min_length=1, max_length=MAX_PENALTIES)],
    _told_once(
        'Give a factor of at least 1 for all models, such as 1.7, or one by model, such as {"resnet50": 1.2}.'
    ),
]
# Of the library's enumerations JSON has the values.
Profiling = Annotated[ProfilingMode, Field(strict=False)]
Tuned = Annotated[TuningRule, Field(strict=False)]
Draw = Annotated[ScoreDraw, Field(strict=False)]


class DrawnTrace(Body):
    """A workload of a family, drawn by a seed that is given elsewhere."""

    kind: Literal["generated"]
    family: Annotated[str, Field(max_length=100)] = "philly"
    jobs: Annotated[int, Field(ge=1, le=MAX_SIMULATED_JOBS)] | None = None
    hours: Annotated[float, Field(gt=0, le=MAX_HOURS)] | None = None


class GeneratedTrace(DrawnTrace):
    """A seeded workload of a family."""

    seed: Seed = 0


class CsvTrace(Body):
    """The text of a trace; its format is recognised by its header."""

    kind: Literal["csv"]
    text: Annotated[str, Field(min_length=1)]


class ClusterTrace(Body):
    """The jobs that a cluster has had: yesterday, under another policy."""

    kind: Literal["cluster"]
    cluster_id: Annotated[str, Field(min_length=1, max_length=200)]


class FailuresBody(Body):
    """Nodes fail, each by itself, after times in service of this mean; what a job has done since its last checkpoint is lost with its node."""

    mtbf_hours: Annotated[
        float,
        Field(
            ge=LEAST_MTBF_HOURS, le=1_000_000, description="Mean hours that a node is in service."
        ),
    ]
    repair_seconds: Annotated[
        float, Field(ge=0, le=31_622_400, description="Until it is in service again.")
    ] = 1800.0


class TraceReservationBody(Body):
    """GPUs that everybody but the holder leaves free for a period. The holder: a tenant, or a job of the trace by its name."""

    gpu_type: GpuTypeName
    gpu_count: GpuCount
    tenant: Name | None = None
    job: Name | None = None
    start_seconds: Annotated[float, Field(ge=0, le=MAX_SECONDS)] = 0.0
    end_seconds: Annotated[float, Field(gt=0, le=MAX_SECONDS)] | None = Field(
        default=None, description="It never ends where absent."
    )


class ConditionsBody(Body):
    """What is simulated under: the same for every run of a simulation and for every point of a sweep."""

    name: Name
    cluster: Annotated[
        str, Field(min_length=1, max_length=10_000, description="Such as t4=6x4,rtx=3x8,a100=2x8.")
    ]
    fidelity: Annotated[str, Field(max_length=100)] = "paper"
    profiling: Profiling | None = Field(
        default=None,
        description="What is known of a job before it runs; the fidelity's own mode where absent.",
    )
    round_seconds: RoundSeconds | None = Field(
        default=None, description="Each policy's own interval where absent."
    )
    rigid_share: Share = Field(
        default=0.0, description="Share of the jobs that keep the trace's GPU count and batch size."
    )
    strong_scaling_share: Share = Field(
        default=0.0, description="Share of the jobs that keep the trace's batch size alone."
    )
    jobs_per_gpu: Annotated[int, Field(ge=1, le=MAX_JOBS_PER_GPU)] = Field(
        default=1,
        description="How many jobs may share a GPU; above 1, `interference` says what they lose.",
    )
    interference: Interference | None = Field(
        default=None,
        description=f"What jobs on one GPU lose: `{SYNTHETIC}`, the shipped table; one slowdown for all pairs, such as 1.25; or the name or id of "
        "uploaded measurements, with `#TYPE` where they tell GPU types apart (v100 where absent).",
    )
    variability: MeasurementName | None = Field(
        default=None,
        description="How unequal the GPUs of a type are: the name or id of uploaded measurements. All of a type are alike where absent.",
    )
    variability_draw: Draw | None = Field(
        default=None,
        description="What a simulated GPU is as slow as: a measured GPU by its median, none twice (`medians`), or any single measurement (`rows`); "
        "drawn by the run's seed. The fidelity's own where absent; needs `variability`.",
        examples=["rows"],
    )
    locality_penalty: LocalityPenalty | None = Field(
        default=None,
        description="How many times as long a job takes across nodes, at least 1: one factor for all models, or a factor by model. "
        "The models' own where absent.",
        examples=[1.7, {"resnet50": 1.2}],
    )
    tuned: Tuned | None = Field(
        default=None,
        description="Jobs keep GPU counts and batch sizes that a well-informed owner chose by this rule; the trace's where absent.",
    )
    tuned_gpus: Annotated[int, Field(ge=1, le=MAX_TUNED_GPUS)] = Field(
        default=16, description="Most GPUs that a tuned job asks for."
    )
    failures: FailuresBody | None = Field(default=None, description="No node fails where absent.")
    reservations: Annotated[list[TraceReservationBody], Field(max_length=MAX_RESERVATIONS)] = Field(
        default_factory=list
    )


class RunBody(Body):
    """One policy with one placer and one seed."""

    policy: Annotated[str, Field(max_length=100)] = "sia"
    policy_parameters: Parameters = Field(default_factory=dict)
    placer: Annotated[str, Field(max_length=100)] | None = Field(
        default=None, description="The one that suits the policy where absent."
    )
    placer_parameters: Parameters = Field(default_factory=dict)
    seed: Seed = 0


class SimulationBody(ConditionsBody):
    """Traces on one cluster: every entry of `runs` is played on each of `traces`."""

    traces: Annotated[
        list[Annotated[GeneratedTrace | CsvTrace | ClusterTrace, Field(discriminator="kind")]],
        Field(min_length=1, max_length=MAX_TRACES),
    ]
    runs: Annotated[list[RunBody], Field(min_length=1, max_length=MAX_RUNS)]


class RunOut(TypedDict):
    """`trace`: its number in the request's `traces`. `summary`: the figures of `maat simulate --json`, null until it has ended."""

    id: str
    policy: str
    policy_parameters: dict[str, Any]
    placer: str
    seed: int
    trace: int
    state: OperationState
    summary: dict[str, Any] | None
    error: dict[str, Any] | None
    started_at: Timestamp | None
    finished_at: Timestamp | None


class SimulationOut(TypedDict):
    """`request`: as it was made; of a CSV trace only its length is shown. `state`: of its operation.

    In a cluster's history other tenants' jobs go by keys such as `other-1` within an answer; all that they took counts.
    """

    id: str
    name: str
    operation_id: str
    created_at: Timestamp
    state: OperationState
    request: dict[str, Any]
    measurements: list[UsedOut]
    runs: list[RunOut]


class Distribution(TypedDict):
    """`points`: [value, share of `jobs` at or below it]. `known` of the `jobs` have the value: the last share is `known` / `jobs`."""

    points: list[list[float]]
    known: int
    jobs: int


class ModelHours(TypedDict):
    """GPU-hours of all `jobs` of a model, by GPU type."""

    jobs: int
    by_type: dict[str, float]


class JobRho(TypedDict):
    name: str
    rho: float


class DrawnRun(TypedDict):
    """One run. `contention`: [cluster seconds, active jobs]. `worst_off`: the jobs of the largest rho. `unfinished`: the first of the jobs that
    did not finish, `unfinished_count` of all.
    """

    id: str
    jct_hours: Distribution
    fairness_rule: FairnessRule
    rho: Distribution
    worst_rho: float | None
    unfair_fraction: float | None
    worst_off: list[JobRho]
    unfinished: list[str]
    unfinished_count: int
    gpu_hours_by_type: dict[str, float]
    gpu_hours_by_model: dict[str, ModelHours]
    contention: list[list[float]]
    policy_seconds: dict[str, float] | None


class FiguresOut(TypedDict):
    """`definitions`: figure -> what it means, as the code that computes it says."""

    runs: list[DrawnRun]
    definitions: dict[str, str]


class Spread(TypedDict):
    """`deviation`: sample standard deviation, None of a single run."""

    mean: float
    deviation: float | None
    runs: int


class Interval(TypedDict):
    """An estimate with its 95 % confidence interval; None where one observation is all there is."""

    estimate: float
    low: float | None
    high: float | None


class ComparedContestant(TypedDict):
    """A policy with a placer (and a variant, where the same two ran with other parameters), and its figures over its runs."""

    name: str
    policy: str
    placer: str
    variant: str
    figures: dict[str, Spread]


class PairedDifference(TypedDict):
    """A contestant (by number) against the baseline, job by job. `basis`: what the intervals speak of. `note`: why mean difference and ratio are
    both true where they seem to contradict each other, else None.
    """

    contestant: int
    basis: Literal["traces", "seeds", "jobs"]
    runs: int
    jobs: int
    left_out: int
    difference_hours: Interval
    ratio: Interval
    sooner: float
    verdict: Literal["faster", "slower", "not told apart"]
    note: NotRequired[str | None]


class Comparison(TypedDict):
    """`baseline`: number of a contestant.

    `fairness_rule`: by which `worst_rho` and `unfair_fraction` of the contestants are computed.
    """

    fairness_rule: FairnessRule
    baseline: int
    contestants: list[ComparedContestant]
    paired: list[PairedDifference]


class SimulatedJob(TypedDict):
    name: str
    model: str
    submit: float
    start: float | None
    finish: float | None
    jct: float | None
    restarts: int
    adaptivity: str
    interruptions: int
    lost_gpu_hours: float
    gpu_hours_by_type: dict[str, float]
    rho: float | None


class AllocationStretch(TypedDict):
    """A stretch of cluster seconds for which a job held the same GPUs."""

    start: float
    end: float
    gpu_type: str
    gpu_count: int
    node_count: int
    total_batch_size: int | None


class RunFairness(TypedDict):
    """By `rule`, over the `jobs` that have a rho; None if none has one."""

    rule: FairnessRule
    worst_rho: float | None
    unfair_fraction: float | None
    jobs: int


class RunResult(TypedDict):
    """`allocations`: of the jobs that were asked for. `policy_seconds`: rounds, min, p25, median, p75, p95, max; None where no round had jobs.
    `definitions`: figure -> what it means, as the code that computes it says.
    """

    summary: dict[str, float | int | str | None]
    jobs: list[SimulatedJob]
    contention: list[list[float]]
    gpus_by_type: dict[str, object]
    gpu_hours_by_model_type: dict[str, dict[str, float]]
    fairness: RunFairness
    policy_seconds: dict[str, float] | None
    allocations: dict[str, list[AllocationStretch]]
    definitions: dict[str, str]
