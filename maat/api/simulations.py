"""Simulations: their conditions and their results."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator
from typing_extensions import TypedDict

from maat.api.fields import Body, GpuCount, GpuTypeName, Name, Parameters, RoundSeconds, Timestamp
from maat.api.measurements import UsedOut
from maat.api.operations import OperationState
from maat.api.quotas import MAX_QUOTAS, TenantQuotaBody
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
MAX_CHOSEN_JOBS = 12  # jobs with allocations in one answer
MAX_RESERVATIONS = 64
MAX_FAILURES_PER_HOUR = 1000
MAX_TUNED_GPUS = 1024
MAX_PENALTIES = 1000  # more than there are models

Seed = Annotated[int, Field(ge=0, le=2**31 - 1)]
Share = Annotated[float, Field(ge=0, le=1)]


def _one_refusal(remedy: str) -> WrapValidator:
    """Report one error at the field itself, not one for each type of its union."""

    def check_all(value: Any, check: ValidatorFunctionWrapHandler) -> Any:
        try:
            return check(value)
        except ValidationError:
            raise ValueError(f"This value cannot be used: {remedy}") from None

    return WrapValidator(check_all)


# The name or the id of uploaded measurements.
MeasurementName = Annotated[str, Field(min_length=1, max_length=400)]
Interference = Annotated[
    MeasurementName | Annotated[float, Field(ge=1, le=MAX_SLOWDOWN)],
    _one_refusal(
        f"Give '{SYNTHETIC}', a slowdown from 1 to {MAX_SLOWDOWN:g}, "
        "or the name of uploaded measurements."
    ),
]
# The library checks that it is at least 1.
Factor = Annotated[float, Field(json_schema_extra={"minimum": 1})]
LocalityPenalty = Annotated[
    Factor | Annotated[dict[str, Factor], Field(min_length=1, max_length=MAX_PENALTIES)],
    _one_refusal(
        "Give a factor of at least 1 for all models, such as 1.7, "
        'or one by model, such as {"resnet50": 1.2}.'
    ),
]
# JSON holds the values of the library's enumerations.
Profiling = Annotated[ProfilingMode, Field(strict=False)]
Tuned = Annotated[TuningRule, Field(strict=False)]
Draw = Annotated[ScoreDraw, Field(strict=False)]


class DrawnTrace(Body):
    """A workload of a family; its seed is given elsewhere."""

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
    """The jobs that a cluster has had, to play again under another policy."""

    kind: Literal["cluster"]
    cluster_id: Annotated[str, Field(min_length=1, max_length=200)]


class FailuresBody(Body):
    """Independent failures of nodes with this mean time in service.

    A failed node loses what its jobs have done since their last checkpoint.
    """

    mtbf_hours: Annotated[
        float,
        Field(
            ge=LEAST_MTBF_HOURS,
            le=1_000_000,
            description="Mean time between failures of a node, hours.",
        ),
    ]
    repair_seconds: Annotated[
        float, Field(ge=0, le=31_622_400, description="Time until it is in service again.")
    ] = 1800.0


class TraceReservationBody(Body):
    """GPUs kept for a tenant, or for a job of the trace by name, for a period."""

    gpu_type: GpuTypeName
    gpu_count: GpuCount
    tenant: Name | None = None
    job: Name | None = None
    start_seconds: Annotated[float, Field(ge=0, le=MAX_SECONDS)] = 0.0
    end_seconds: Annotated[float, Field(gt=0, le=MAX_SECONDS)] | None = Field(
        default=None, description="Default: it never ends."
    )


class ConditionsBody(Body):
    """The conditions of a simulation: the same for all its runs or points."""

    name: Name
    cluster: Annotated[
        str, Field(min_length=1, max_length=10_000, description="Such as t4=6x4,rtx=3x8,a100=2x8.")
    ]
    fidelity: Annotated[str, Field(max_length=100)] = "paper"
    profiling: Profiling | None = Field(
        default=None,
        description="What is known of a job before it runs; default: the fidelity's own mode.",
    )
    round_seconds: RoundSeconds | None = Field(
        default=None,
        description="Interval of rounds, unless a run has its own. Default: the fidelity's, else "
        "each policy's.",
    )
    rigid_share: Share = Field(
        default=0.0, description="Share of the jobs that keep the trace's GPU count and batch size."
    )
    strong_scaling_share: Share = Field(
        default=0.0, description="Share of the jobs that keep only the trace's batch size."
    )
    jobs_per_gpu: Annotated[int, Field(ge=1, le=MAX_JOBS_PER_GPU)] = Field(
        default=1,
        description="How many jobs may share a GPU; above 1, `interference` gives their slowdown.",
    )
    interference: Interference | None = Field(
        default=None,
        description="Slowdown of jobs on one GPU: "
        f"`{SYNTHETIC}`, the shipped table; one slowdown for all pairs, such as 1.25; "
        "or the name or id of uploaded measurements, with `#TYPE` if they distinguish GPU types "
        "(default: v100).",
    )
    variability: MeasurementName | None = Field(
        default=None,
        description="How the GPUs of a type differ in speed: the name or id of uploaded "
        "measurements. Default: all of a type are equal.",
    )
    variability_draw: Draw | None = Field(
        default=None,
        description="How each simulated GPU's slowness is drawn by the run's seed: the median of a "
        "measured GPU, none twice (`medians`), or any single measurement (`rows`). "
        "Default: the fidelity's own; needs `variability`.",
        examples=["rows"],
    )
    locality_penalty: LocalityPenalty | None = Field(
        default=None,
        description="Slowdown of a job across nodes, at least 1: "
        "one factor for all models, or a factor by model. Default: the models' own.",
        examples=[1.7, {"resnet50": 1.2}],
    )
    tuned: Tuned | None = Field(
        default=None,
        description="Jobs keep GPU counts and batch sizes that a well-informed owner chose by this "
        "rule; default: the trace's.",
    )
    tuned_gpus: Annotated[int, Field(ge=1, le=MAX_TUNED_GPUS)] = Field(
        default=16, description="Maximum number of GPUs that a tuned job asks for."
    )
    failures: FailuresBody | None = Field(default=None, description="Default: no node fails.")
    reservations: Annotated[list[TraceReservationBody], Field(max_length=MAX_RESERVATIONS)] = Field(
        default_factory=list
    )
    quotas: Annotated[list[TenantQuotaBody], Field(max_length=MAX_QUOTAS)] | None = Field(
        default=None,
        description="What tenants of the traces may hold. Default: if a cluster's history is "
        "played again, the quotas and weights that it has now, as far as the simulated cluster has "
        "the GPUs; else none. Of those, answers show your own tenant's.",
    )


class RunBody(Body):
    """One policy with one placer and one seed."""

    policy: Annotated[str, Field(max_length=100)] = "sia"
    policy_parameters: Parameters = Field(default_factory=dict)
    placer: Annotated[str, Field(max_length=100)] | None = Field(
        default=None, description="Default: the policy's own placer."
    )
    placer_parameters: Parameters = Field(default_factory=dict)
    round_seconds: RoundSeconds | None = Field(
        default=None, description="Interval of its rounds; default: the simulation's."
    )
    seed: Seed = 0


class SimulationBody(ConditionsBody):
    """Traces on one cluster: every entry of `runs` is played on each of `traces`."""

    traces: Annotated[
        list[Annotated[GeneratedTrace | CsvTrace | ClusterTrace, Field(discriminator="kind")]],
        Field(min_length=1, max_length=MAX_TRACES),
    ]
    runs: Annotated[list[RunBody], Field(min_length=1, max_length=MAX_RUNS)]


class RunOut(TypedDict):
    """A run.

    `name`: of its contestant in the comparison; runs of other traces and seeds share it. `trace`:
    its number in the request's `traces`. `summary`: the figures of `maat simulate --json`, null
    until it has ended.
    """

    id: str
    name: str
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
    """A simulation.

    `request`: as sent; a CSV trace is replaced by its length. `unreadable`: why the request cannot
    be shown, which then is empty; else null. `state`: of its operation. In a cluster's history
    other tenants' jobs have keys such as `other-1` within an answer; sums include them.
    """

    id: str
    name: str
    operation_id: str
    created_at: Timestamp
    state: OperationState
    request: dict[str, Any]
    unreadable: str | None
    measurements: list[UsedOut]
    runs: list[RunOut]


class Distribution(TypedDict):
    """A distribution over jobs.

    `points`: [value, share of `jobs` at or below it]. `known` of the `jobs` have the value: the
    last share is `known` / `jobs`.
    """

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
    """The figures of one run.

    `contention`: [cluster seconds, active jobs]. `worst_off`: the jobs with the largest rho.
    `unfinished`: the first of the `unfinished_count` unfinished jobs.
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
    """Figures of runs.

    `definitions`: figure -> its meaning, from the code that computes it.
    """

    runs: list[DrawnRun]
    definitions: dict[str, str]


class Spread(TypedDict):
    """A mean over runs.

    `deviation`: sample standard deviation, null for a single run.
    """

    mean: float
    deviation: float | None
    runs: int


class Interval(TypedDict):
    """An estimate with its 95 % confidence interval; null for a single observation."""

    estimate: float
    low: float | None
    high: float | None


class ComparedContestant(TypedDict):
    """A policy with a placer, and its figures over its runs.

    It has a variant if the same two ran with other parameters too.
    """

    name: str
    policy: str
    placer: str
    variant: str
    figures: dict[str, Spread]


class PairedDifference(TypedDict):
    """A contestant (by number) compared with the baseline, job by job.

    `basis`: what the intervals are over. `note`: why mean difference and ratio are both true
    although they seem to contradict each other, else null.
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
    """A comparison.

    `baseline`: number of a contestant. `fairness_rule`: how `worst_rho` and `unfair_fraction` of
    the contestants are computed.
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
    """A span of cluster seconds in which a job held the same GPUs."""

    start: float
    end: float
    gpu_type: str
    gpu_count: int
    node_count: int
    total_batch_size: int | None


class RunFairness(TypedDict):
    """Fairness by `rule` over the `jobs` that have a rho; null if none has one."""

    rule: FairnessRule
    worst_rho: float | None
    unfair_fraction: float | None
    jobs: int


class RunResult(TypedDict):
    """The full result of a run.

    `allocations`: of the requested jobs. `policy_seconds`: rounds, min, p25, median, p75, p95, max;
    null if no round had jobs. `definitions`: figure -> its meaning, from the code that computes it.
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
