"""Simulations: what is asked for, and under which conditions."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import (
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

from maat.api.fields import (
    LEAST_STAY,
    MOST_MOVES,
    Body,
    GpuCount,
    GpuTypeName,
    LeastStay,
    MostMoves,
    Name,
    Parameters,
    RoundSeconds,
)
from maat.api.quotas import MAX_QUOTAS, TenantQuotaBody
from maat.vocabulary import (
    LARGEST_INTEGER,
    LEAST_MTBF_HOURS,
    MAX_HOURS,
    MAX_JOBS_PER_GPU,
    MAX_SECONDS,
    MAX_SLOWDOWN,
    MEASURED,
    MOST_CONTENTION,
    MOST_RACK_PENALTY,
    SYNTHETIC,
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

Seed = Annotated[int, Field(ge=0, le=LARGEST_INTEGER)]
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
    Factor
    | Annotated[dict[str, Factor], Field(min_length=1, max_length=MAX_PENALTIES)]
    | MeasurementName,
    _one_refusal(
        "Give a factor of at least 1 for all models, such as 1.7, "
        f"one by model, such as {{\"resnet50\": 1.2}}, '{MEASURED}', "
        "or the name of uploaded measurements."
    ),
]
# JSON holds the values of the library's enumerations.
Profiling = Annotated[ProfilingMode, Field(strict=False)]
Tuned = Annotated[TuningRule, Field(strict=False)]
Draw = Annotated[ScoreDraw, Field(strict=False)]
JobWindow = Annotated[str, Field(pattern=r"^\d{1,9}-\d{1,9}$")]


class DrawnTrace(Body):
    """A workload of a family; its seed is given elsewhere."""

    kind: Literal["generated"]
    family: Annotated[str, Field(max_length=100)] = "philly"
    jobs: Annotated[int, Field(ge=1, le=MAX_SIMULATED_JOBS)] | None = None
    hours: Annotated[float, Field(gt=0, le=MAX_HOURS)] | None = None
    xxl_share: Share = Field(
        default=0.0,
        description="Share of the jobs that fine-tune GPT, hybrid-parallel (Sia section 5.3); "
        "not of the families sharing and synergy.",
    )


class GeneratedTrace(DrawnTrace):
    """A seeded workload of a family."""

    seed: Seed = 0


class CsvTrace(Body):
    """The text of a trace; its format is recognised by its header."""

    kind: Literal["csv"]
    text: Annotated[str, Field(min_length=1)]
    name: Name | None = Field(default=None, description="What it is called, such as its file.")


class UploadedTrace(Body):
    """A trace among the uploaded measurements. What is asked for keeps its text."""

    kind: Literal["uploaded"]
    measurement: Annotated[str, Field(min_length=1, max_length=400)] = Field(
        description="Its name or id, of kind `trace`."
    )


class ClusterTrace(Body):
    """The jobs that a cluster has had, to play again under another policy.

    All of them, or those that wanted GPUs in a window of cluster time. Jobs that began before the
    window come at its beginning with the work that was left of them.
    """

    kind: Literal["cluster"]
    cluster_id: Annotated[str, Field(min_length=1, max_length=200)]
    since_seconds_ago: Annotated[float, Field(gt=0, le=MAX_SECONDS)] | None = Field(
        default=None,
        description="The window begins this many seconds of cluster time before the request. "
        "Default: no window, all jobs from their beginning.",
    )
    until_seconds_ago: Annotated[float, Field(ge=0, le=MAX_SECONDS)] = Field(
        default=0.0, description="The window ends this many seconds before the request."
    )

    @model_validator(mode="after")
    def _is_a_window(self) -> Self:
        begins = self.since_seconds_ago
        if self.until_seconds_ago and (begins is None or begins <= self.until_seconds_ago):
            raise ValueError(
                "The window ends before it begins: give a since_seconds_ago above until_seconds_ago"
            )
        return self


class HistoryWindow(Body):
    """A window of a cluster's history, and its jobs by what they were when it began.

    `begun_before`: had held GPUs, and come at the beginning with the work that was left.
    `waiting_before`: waited, and come at the beginning. `submitted`: came in the window.
    `cut_short`: of these, cancelled or failed: they have the work that they had done until then.
    `as_recorded`: of these, commands, which run on as many GPUs for as long as they did.
    `without_work`: left out, since nothing is known of their work in the window.
    """

    start: str
    end: str
    begun_before: int
    waiting_before: int
    submitted: int
    cut_short: int
    as_recorded: int
    without_work: int


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
    profiles: MeasurementName | None = Field(
        default=None,
        description="The name or id of uploaded profiles: jobs are of these models, and their step "
        "times and gradients are the measured ones. Default: the models that Maat ships.",
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
        description="Slowdown of a job across nodes, at least 1: one factor for all models, a "
        "factor by model, or the name or id of uploaded measurements. Default: the models' own. "
        f"`{MEASURED}`: these too, but placers know what the models' step times show across nodes.",
        examples=[1.7, {"resnet50": 1.2}, MEASURED],
    )
    rack_penalty: Annotated[float, Field(ge=1, le=MOST_RACK_PENALTY)] = Field(
        default=1.0,
        title="Further slowdown across racks",
        description="Of every model, beyond that across nodes. The cluster has racks: t4=16x4/4 is "
        "four racks of four nodes.",
        examples=[1.5],
    )
    network_contention: Annotated[float, Field(ge=0, le=MOST_CONTENTION)] = Field(
        default=0.0,
        title="Network contention (share, 0–0.99)",
        description="Share of its speed that a job across nodes loses while it shares one of them "
        "with another such job.",
        examples=[0.25],
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
    measured_jobs: JobWindow | None = Field(
        default=None,
        title="Figures of jobs",
        description="The jobs that figures are of, FIRST-LAST, counted from 0 in order of "
        "submission: the steady state of a longer trace. Default: all.",
        examples=["2000-3000"],
    )
    reservations: Annotated[list[TraceReservationBody], Field(max_length=MAX_RESERVATIONS)] = Field(
        default_factory=list
    )
    least_stay_seconds: LeastStay | None = Field(
        default=None, title="Least stay of a job (s)", description=LEAST_STAY
    )
    most_moves_per_hour: MostMoves | None = Field(
        default=None, title="Most moves of a job in an hour", description=MOST_MOVES
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
    tuned: Tuned | None = Field(
        default=None,
        description="The rule by which its jobs are tuned; default: the simulation's.",
    )
    seed: Seed = 0


class SimulationBody(ConditionsBody):
    """Traces on one cluster: every entry of `runs` is played on each of `traces`."""

    traces: Annotated[
        list[
            Annotated[
                GeneratedTrace | CsvTrace | UploadedTrace | ClusterTrace,
                Field(discriminator="kind"),
            ]
        ],
        Field(min_length=1, max_length=MAX_TRACES),
    ]
    runs: Annotated[list[RunBody], Field(min_length=1, max_length=MAX_RUNS)]
