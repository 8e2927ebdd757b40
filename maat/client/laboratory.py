"""The JSON of simulations and of long work, as types. The live cluster's resources are in resources.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NotRequired, TypedDict

OperationState = Literal["queued", "running", "succeeded", "failed", "cancelled"]
# By which finish-time fairness rho is computed: `maat.scheduling.metrics.FairnessRule` says how.
FairnessRule = Literal["mean-of-ratios", "ratio-to-mean", "share-of-type"]


class RunBody(TypedDict, total=False):
    policy: str
    policy_parameters: dict[str, object]
    placer: str
    placer_parameters: dict[str, object]
    seed: int


class MeasurementFileBody(TypedDict):
    name: str
    text: str


class MeasurementBody(TypedDict, total=False):
    """`variability`: a file for each application and GPU type; `interference`: one file."""

    kind: Literal["variability", "interference"]
    name: str
    files: list[MeasurementFileBody]


class MeasurementFile(TypedDict):
    name: str
    bytes: int
    sha256: str


class Measurement(TypedDict):
    """`covers`: GPU type -> the applications or models that were measured on it."""

    id: str
    kind: Literal["variability", "interference"]
    name: str
    owner: str
    tenant: str
    digest: str
    bytes: int
    files: list[MeasurementFile]
    covers: dict[str, list[str]]
    created_at: str


class UsedMeasurement(TypedDict):
    """Measurements that work was asked for with; `deleted` ones stay with it. `gpu_type`: the one chosen of a table for several."""

    id: str
    kind: Literal["variability", "interference"]
    name: str
    digest: str
    gpu_type: str | None
    deleted: bool


class Fidelity(TypedDict):
    """`policy_parameters`, `placer_parameters`: by policy and placer, what holds where a request sets none."""

    name: str
    summary: str
    round_seconds: float | None
    policy_parameters: dict[str, dict[str, object]]
    placer_parameters: dict[str, dict[str, object]]


class FailuresBody(TypedDict):
    mtbf_hours: float
    repair_seconds: NotRequired[float]


class TraceReservationBody(TypedDict):
    """Reserved for a tenant, or for a job of the trace by its name."""

    gpu_type: str
    gpu_count: int
    tenant: NotRequired[str]
    job: NotRequired[str]
    start_seconds: NotRequired[float]
    end_seconds: NotRequired[float | None]


class ConditionsBody(TypedDict, total=False):
    """What simulations and sweeps are simulated under. `interference`: `synthetic`, a slowdown, or uploaded measurements by name or id.
    `locality_penalty`: slowdown across nodes, of all models or by model."""

    name: str
    cluster: str
    fidelity: str
    profiling: Literal["oracle", "requested", "bootstrap", "no-profile", "request-oracle"] | None
    round_seconds: float | None
    rigid_share: float
    strong_scaling_share: float
    jobs_per_gpu: int
    interference: float | str | None
    variability: str | None
    variability_draw: Literal["medians", "rows"] | None
    locality_penalty: float | dict[str, float] | None
    tuned: Literal["any-pair", "best-batch"] | None
    tuned_gpus: int
    failures: FailuresBody | None
    reservations: list[TraceReservationBody]


class SimulationBody(ConditionsBody, total=False):
    """Every entry of `runs` is played on each of `traces`."""

    traces: list[dict[str, object]]
    runs: list[RunBody]


class SimulationRun(TypedDict):
    id: str
    policy: str
    policy_parameters: dict[str, object]
    placer: str
    seed: int
    trace: int
    state: OperationState
    summary: dict[str, float | int | str | None] | None
    error: dict[str, object] | None
    started_at: str | None
    finished_at: str | None


class Simulation(TypedDict):
    id: str
    name: str
    operation_id: str
    created_at: str
    state: OperationState
    request: SimulationBody
    measurements: list[UsedMeasurement]
    runs: list[SimulationRun]


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
    """`baseline`: number of a contestant. `fairness_rule`: by which `worst_rho` and `unfair_fraction` of the contestants are computed."""

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
    """By `rule`, over the `jobs` that have a rho; None where none has."""

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


class Distribution(TypedDict):
    """`points`: [value, share of `jobs` at or below it]; `known` of the `jobs` have the value."""

    points: list[list[float]]
    known: int
    jobs: int


class ModelHours(TypedDict):
    jobs: int
    by_type: dict[str, float]


class JobRho(TypedDict):
    name: str
    rho: float


class DrawnRun(TypedDict):
    """What charts draw of a run. `fairness_rule`: by which rho, and what follows from it, is computed. `unfinished`: the first of the jobs that did not finish, `unfinished_count` of all."""

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


class Figures(TypedDict):
    """`definitions`: figure -> what it means, as the code that computes it says."""

    runs: list[DrawnRun]
    definitions: dict[str, str]


class VaryBody(TypedDict):
    name: str
    values: Sequence[float | str]


class SweepBody(ConditionsBody, total=False):
    trace: dict[str, object]
    policy: str
    policy_parameters: dict[str, object]
    placer: str | None
    placer_parameters: dict[str, object]
    vary: list[VaryBody]
    seeds: list[int]


class SweepAxis(TypedDict):
    name: str
    title: str
    unit: str | None
    logarithmic: bool
    values: list[float | str]


class SweepPoint(TypedDict):
    position: int
    settings: dict[str, float | str]
    seed: int
    key: str
    state: OperationState
    figures: dict[str, float] | None
    error: dict[str, object] | None


class SweepRow(TypedDict):
    """Mean and sample standard deviation over the seeds that have ended."""

    settings: dict[str, float | str]
    seeds: list[int]
    mean: dict[str, float]
    spread: dict[str, float]


class SweepHead(TypedDict):
    """A sweep as lists show it: `done` of `total` points have ended."""

    id: str
    name: str
    operation_id: str
    created_at: str
    state: OperationState
    done: int
    total: int
    seeds: list[int]
    axes: list[SweepAxis]


class Sweep(SweepHead):
    """`fairness_rule`: by which `worst_rho` and `unfair_fraction` of points and rows are computed."""

    fairness_rule: FairnessRule
    request: dict[str, object]
    measurements: list[UsedMeasurement]
    points: list[SweepPoint]
    rows: list[SweepRow]


class Operation(TypedDict):
    """Long work. `done` of `total` `unit`; `error` is a problem document when it failed."""

    id: str
    kind: str
    state: OperationState
    done: float
    total: float
    unit: str
    message: str
    error: dict[str, object] | None
    result_url: str | None
    created_at: str
    started_at: str | None
    finished_at: str | None
