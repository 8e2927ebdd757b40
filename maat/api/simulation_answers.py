"""Simulations: what the service answers of them, and their results."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from maat.api.fields import Timestamp
from maat.api.measurements import UsedOut
from maat.api.operations import OperationState
from maat.vocabulary import FairnessRule


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

    `request`: as sent; a CSV trace is replaced by its length, and a cluster's history tells its
    window as `window`, and as `left_out` how many later jobs a replay has no room for.
    `unreadable`: why the request cannot be shown, which then is empty; else null. `state`: of its
    operation. In a cluster's history other tenants' jobs have keys such as `other-1` within an
    answer; sums include them.
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


class SimulationTraceOut(TypedDict):
    """A trace that a simulation was sent with, as CSV text."""

    text: str


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

    `contention`: [cluster seconds, active jobs]. `gpus_by_type`, `efficiency`, `nodes`: [cluster
    seconds, what holds until the next]: GPUs in use, mean statistical efficiency of the jobs that
    train (null while none does), nodes in service. `waited_hours`: all waiting of a job.
    `placement_slowdown`: of each job that trained, L x max V (PAL eq. 1), its mean over GPU time;
    not of jobs of other tenants. What an earlier version did not keep is empty. `worst_off`: the
    jobs with the largest rho. `unfinished`: the first of the `unfinished_count` unfinished jobs.
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
    gpus_by_type: dict[str, list[list[float]]]
    efficiency: list[list[float | None]]
    nodes: list[list[float]]
    waited_hours: Distribution
    placement_slowdown: Distribution
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

    `basis`: what the intervals are over. `cannot_run`, `baseline_cannot_run`: jobs that never run
    under the contestant, and under the baseline; if they are not as many, the verdict says so.
    `note`: why mean difference and ratio are both true although they seem to contradict each other,
    else null.
    """

    contestant: int
    basis: Literal["traces", "seeds", "jobs"]
    runs: int
    jobs: int
    left_out: int
    difference_hours: Interval
    ratio: Interval
    sooner: float
    cannot_run: int
    baseline_cannot_run: int
    verdict: Literal["faster", "slower", "not told apart", "not all jobs can run"]
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
    """A job. `measured`: whether figures are of it; a run of an earlier version does not say."""

    name: str
    model: str
    measured: NotRequired[bool]
    submit: float
    start: float | None
    finish: float | None
    jct: float | None
    waited: NotRequired[float | None]
    placement_slowdown: NotRequired[float | None]
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


class JobSeries(TypedDict):
    """The life of a job as columns: each entry holds from `time` to the next, the last to `end`.

    Times are cluster seconds. Without GPUs (`gpu_count` 0) it waits. `total_batch_size` and
    `efficiency` (Pollux eq. 6): while it trains; policy or agent set the batch. `locality` x
    `variability`: what its place costs, L x max V (PAL eq. 1); `slowdown`: for all reasons.
    """

    time: list[float]
    end: float
    gpu_type: list[str | None]
    gpu_count: list[int]
    node_count: list[int]
    total_batch_size: list[int | None]
    efficiency: list[float | None]
    locality: list[float | None]
    variability: list[float | None]
    slowdown: list[float | None]


class RunFairness(TypedDict):
    """Fairness by `rule` over the `jobs` that have a rho; null if none has one."""

    rule: FairnessRule
    worst_rho: float | None
    unfair_fraction: float | None
    jobs: int


class RunResult(TypedDict):
    """The full result of a run.

    `allocations`, `series`: of the requested jobs; a run of an earlier version has no series.
    `efficiency`: [cluster seconds, mean over the jobs that train], `efficiency_by_gpu`: weighted by
    their GPUs. `policy_seconds`: rounds, min, p25, median, p75, p95, max;
    null if no round had jobs. `definitions`: figure -> its meaning, from the code that computes it.
    """

    summary: dict[str, float | int | str | None]
    jobs: list[SimulatedJob]
    contention: list[list[float]]
    gpus_by_type: dict[str, object]
    efficiency: NotRequired[list[list[float | None]]]
    efficiency_by_gpu: NotRequired[list[list[float | None]]]
    nodes: NotRequired[list[list[float]]]
    gpu_hours_by_model_type: dict[str, dict[str, float]]
    fairness: RunFairness
    policy_seconds: dict[str, float] | None
    allocations: dict[str, list[AllocationStretch]]
    series: dict[str, JobSeries]
    definitions: dict[str, str]
