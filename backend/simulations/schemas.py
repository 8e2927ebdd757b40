"""Simulations as the API speaks of them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator

from backend.clusters.schemas import Parameters, RoundSeconds
from backend.measurements.schemas import UsedOut
from backend.operations.models import Operation
from backend.sight import Sight
from backend.simulations.models import Simulation, SimulationRun
from backend.simulations.seen import of_trace, request_seen, summary_seen
from backend.web.fields import Body, GpuCount, Name, Timestamp
from maat.vocabulary import (
    LEAST_MTBF_HOURS,
    MAX_HOURS,
    MAX_JOBS_PER_GPU,
    MAX_SECONDS,
    MAX_SLOWDOWN,
    SYNTHETIC,
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
State = Literal["queued", "running", "succeeded", "failed", "cancelled"]
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

    gpu_type: Annotated[str, Field(min_length=1, max_length=48)]
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


class RunOut(BaseModel):
    """`trace`: its number in the request's `traces`. `summary`: the figures of `maat simulate --json`, null until it has ended."""

    id: str
    policy: str
    policy_parameters: dict[str, Any]
    placer: str
    seed: int
    trace: int
    state: State
    summary: dict[str, Any] | None
    error: dict[str, Any] | None
    started_at: Timestamp | None
    finished_at: Timestamp | None

    @classmethod
    def of(cls, run: SimulationRun, sight: Sight) -> RunOut:
        summary = None if run.summary is None else summary_seen(run.summary, sight)
        return cls(**run.model_dump(include=set(cls.model_fields) - {"summary"}), summary=summary)


class SimulationOut(BaseModel):
    """`request`: as it was made; of a CSV trace only its length is shown. `state`: of its operation.

    In a cluster's history other tenants' jobs go by keys such as `other-1` within an answer; all that they took counts.
    """

    id: str
    name: str
    operation_id: str
    created_at: Timestamp
    state: State
    request: dict[str, Any]
    measurements: list[UsedOut]
    runs: list[RunOut]

    @classmethod
    def of(
        cls,
        simulation: Simulation,
        operation: Operation,
        runs: list[SimulationRun],
        used: list[UsedOut],
        sight: Sight,
    ) -> SimulationOut:
        given = simulation.model_dump(include={"id", "name", "operation_id", "created_at"})
        state: Any = operation.state
        shown = [RunOut.of(run, of_trace(simulation, run.trace, sight)) for run in runs]
        request = without_text(request_seen(simulation.request, sight))
        return cls(**given, state=state, request=request, measurements=used, runs=shown)


def without_text(request: dict[str, Any]) -> dict[str, Any]:
    """A stored request as it is shown: of a trace's text, its length."""
    if "trace" in request:
        return request | {"trace": _shown(request["trace"])}
    return request | {"traces": [_shown(trace) for trace in request["traces"]]}


def _shown(trace: dict[str, Any]) -> dict[str, Any]:
    if "text" not in trace:
        return trace
    return {name: value for name, value in trace.items() if name != "text"} | {
        "text_bytes": len(trace["text"].encode())
    }
