"""Forecasts: when jobs start and end, and what changes would do."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator
from typing_extensions import TypedDict

from maat.api.clusters import NodeBody
from maat.api.fields import NO_BOUND, Body, LeastStay, MostMoves, Parameters, Timestamp
from maat.api.jobs import JobBody
from maat.api.operations import OperationState
from maat.vocabulary import ForecastBasis

MOST_CHANGED_NODES = 1000
MOST_SLOWED = 200
"""An answer names at most so many jobs that end later, and as many of those that end earlier."""
MOST_TIMED = 20
"""Of so many of these, the most slowed and the most hastened, it has times before and after."""
NamedPart = Annotated[str, Field(min_length=1, max_length=100)]


def p90_probability(draws: int) -> float:
    """Return with which probability a time is at most what is called P90, of so many draws.

    0.9 from nine on. The largest of fewer is less: of three, 0.75.
    """
    return min(0.9, draws / (draws + 1))


def late_quantile(draws: int) -> str:
    """Return what the time called P90 is, of so many draws: `P90` from nine on, `P75` of three."""
    return f"P{100 * p90_probability(draws):.0f}"


def is_first_guess(draws: int) -> bool:
    """Return whether a time is that of one draw: it says nothing of how late it may get."""
    return draws == 1


def grounds_in_words(basis: ForecastBasis, precedents: int) -> str:
    """Return a sentence that says what the end of a job rests on."""
    jobs = "1 job" if precedents == 1 else f"{precedents} jobs"
    match basis:
        case ForecastBasis.WORK if precedents:
            return f"Its pace is that of {jobs} that ended."
        case ForecastBasis.WORK:
            return "Its pace is assumed: no job has ended yet."
        case ForecastBasis.RUNS:
            return f"Nobody said how much work it has: it is taken to run as {jobs} like it did."
        case ForecastBasis.GUESS:
            return (
                "A guess: nobody said how much work it has, and no job like it has ended after "
                "running longer."
            )


class ClusterChangesBody(Body):
    """What would be different of a cluster from now on."""

    drain_nodes: Annotated[list[NamedPart], Field(max_length=MOST_CHANGED_NODES)] = Field(
        default_factory=list, title="Drain nodes", description="Names of nodes."
    )
    add_nodes: Annotated[list[NodeBody], Field(max_length=MOST_CHANGED_NODES)] = Field(
        default_factory=list, title="Add nodes"
    )
    add_shape: Annotated[str, Field(min_length=1, max_length=1000)] | None = Field(
        default=None, title="Add nodes, as a shape", description="Such as `a100=2x8,t4=1x4`."
    )
    policy: NamedPart | None = Field(default=None, title="Policy")
    policy_parameters: Parameters = Field(default_factory=dict)
    placer: NamedPart | None = Field(
        default=None,
        title="Placer",
        description="Default: the cluster's, or another policy's own, as in a change of it.",
    )
    placer_parameters: Parameters = Field(default_factory=dict)
    least_stay_seconds: LeastStay | None = Field(
        default=None, title="Least stay of a job (s)", description=NO_BOUND
    )
    most_moves_per_hour: MostMoves | None = Field(
        default=None, title="Most moves of a job in an hour", description=NO_BOUND
    )

    @property
    def bounds(self) -> dict[str, Any]:
        """What is said of how long jobs stay where they are, by field; None: no bound."""
        named = {"least_stay_seconds", "most_moves_per_hour"}
        return self.model_dump(include=named, exclude_unset=True)

    @property
    def parts(self) -> dict[str, Any]:
        """What is said of policy and placer, by field."""
        named = {"policy", "policy_parameters", "placer", "placer_parameters"}
        return self.model_dump(include=named, exclude_unset=True, exclude_none=True)

    @model_validator(mode="after")
    def _changes_something(self) -> ClusterChangesBody:
        if not self.model_fields_set:
            raise ValueError(
                "Nothing is changed: give drain_nodes, add_nodes, policy, placer, "
                "least_stay_seconds or most_moves_per_hour"
            )
        if self.policy_parameters and self.policy is None:
            raise ValueError("There are policy_parameters without a policy: name the policy")
        if self.placer_parameters and self.placer is None:
            raise ValueError("There are placer_parameters without a placer: name the placer")
        return self


class ForecastBody(Body):
    """A question: what if this job were submitted now, or the cluster were changed?"""

    cluster_id: Annotated[str, Field(max_length=200)] | None = Field(
        default=None, description="Id or name; default: the job's, or the first cluster."
    )
    job: JobBody | None = Field(default=None, description="A job that is not submitted yet.")
    changes: ClusterChangesBody | None = None

    @model_validator(mode="after")
    def _asks_something(self) -> ForecastBody:
        if self.job is None and self.changes is None:
            raise ValueError("Nothing is asked: give job, changes or both")
        return self


class QuantilesOut(TypedDict):
    """A time that is not known: with probability 1/2 it is not after P50, with 9/10 not after P90.

    Seconds count from `made_at`, in cluster time. Null: later than 14 days, or never.
    """

    p50_at: Timestamp | None
    p90_at: Timestamp | None
    p50_seconds: float | None
    p90_seconds: float | None


class HeldOut(TypedDict):
    """From then on, in the most ordinary course, the job holds these GPUs; none: it waits."""

    from_at: Timestamp
    gpu_type: str | None
    gpu_count: int


class ForecastTimes(TypedDict):
    """When a job starts and ends. `start` is null if it holds GPUs: it has started.

    `basis`: what the end is drawn from: its `work`, at its step times and the pace of jobs that
    ended; else the `runs` of jobs like it; else it is a `guess`. `precedents`: how many ended jobs
    were drawn from.
    """

    start: QuantilesOut | None
    end: QuantilesOut
    allocations: list[HeldOut]
    basis: ForecastBasis
    precedents: int


class JobTimesOut(TypedDict):
    """When a job starts and ends, as of the last forecast that has it. `start`, `basis`: as above.

    `draws`: on how many it rests; of fewer than nine, P90 is held less often. Of one it is a first
    guess, and P90 says no more than P50.
    """

    made_at: Timestamp
    draws: int
    start: QuantilesOut | None
    end: QuantilesOut
    basis: ForecastBasis
    precedents: int


class JobForecastOut(TypedDict):
    """The latest forecast of a job.

    `state`: `made`, or why there is none: the job has `ended`, is `paused`, its end is `not-known`,
    or the forecast is `coming`. `sentence` says the same, and what is under way; `since`: since
    when, in wall time. `draws`: of n < 9, P90 is held with probability n / (n + 1); one is a first
    guess.
    """

    job_id: str
    state: Literal["made", "coming", "not-known", "paused", "ended"]
    since: Timestamp | None
    made_at: Timestamp | None
    round_number: int | None
    draws: int | None
    times: ForecastTimes | None
    sentence: str


class SlowedOut(TypedDict):
    """How much later a job ends than without the change, seconds; negative: earlier.

    P50 and P90 of the differences; `share`: in how many draws it ends later, 0-1. `name`: null for
    another tenant's job. `before`, `after`: when it starts and ends, and what it holds in one draw;
    null for another tenant's job, and for those beyond the 20 most slowed and the 20 most hastened.
    """

    job_id: str
    name: str | None
    p50_seconds: float
    p90_seconds: float
    share: float
    before: ForecastTimes | None
    after: ForecastTimes | None


class SideOut(TypedDict):
    """All jobs that have not ended, by P50. `later`: how many have no end within 14 days.

    Means are of the jobs that have such times before and after: mean start and mean end of the
    `waiting` jobs, which hold no GPUs, and mean end of `ending` jobs, these and those that run.
    `waiting`, `ending`, the mean end of waiting jobs: null in an answer of an earlier version.
    `last_end_seconds`: null if a job
    has no end within 14 days, or there is none. `policy`, `placer` and their parameters: what
    decides and places; null in an answer of an earlier version of Maat. `least_stay_seconds`,
    `most_moves_per_hour`: how long the cluster lets jobs stay where they are; null: no bound, or an
    answer of an earlier version.
    """

    policy: str | None
    policy_parameters: dict[str, Any] | None
    placer: str | None
    placer_parameters: dict[str, Any] | None
    least_stay_seconds: float | None
    most_moves_per_hour: int | None

    jobs: int
    later: int
    waiting: int | None
    ending: int | None
    mean_start_seconds: float | None
    mean_end_of_waiting_seconds: float | None
    mean_end_seconds: float | None
    last_end_seconds: float | None


def means_in_words(side: SideOut) -> str:
    """Say of which jobs the means of a side are; `` of an answer that did not keep it."""
    waiting, ending = side["waiting"], side["ending"]
    if waiting is None or ending is None:
        return ""
    starts = (
        "the 1 waiting job that starts and ends"
        if waiting == 1
        else (f"the {waiting} waiting jobs that start and end")
    )
    ends = (
        "of the 1 job, waiting or not, that ends"
        if ending == 1
        else (f"of all {ending} jobs, waiting or not, that end")
    )
    if not waiting:
        return f"The mean is {ends} within 14 days in both. No such job waits."
    return f"Means are of {starts}, and {ends}, within 14 days in both."


class ForecastOut(TypedDict):
    """A question and its answer, which is null until there is a first one.

    While the operation is under way, an answer rests on the `draws` played so far. Of fewer than
    nine, P90 is the largest of them: of n, it is held with probability n / (n + 1).
    `job`: the times of the job that was asked for. `slowed`: who ends later or earlier, most first.
    `before` and `after`: all jobs, without and with what was asked. `notes`: sentences on what the
    figures do not say, such as why no job uses a GPU type that was asked for.
    """

    id: str
    cluster_id: str
    operation_id: str
    state: OperationState
    request: dict[str, Any]
    made_at: Timestamp | None
    draws: int | None
    job: ForecastTimes | None
    slowed: list[SlowedOut] | None
    before: SideOut | None
    after: SideOut | None
    notes: list[str] | None
    error: dict[str, Any] | None
    created_at: Timestamp


class CalibrationBinOut(TypedDict):
    """Promises whose time has come, of one quantity. `held`: the share that came in time, 0-1."""

    quantity: Literal["start", "end"]
    quantile: float
    promises: int
    held: float | None


class SharpnessOut(TypedDict):
    """How near promises of one quantity came to what happened, before or after it, in cluster time.

    `promises`: of which that is known by now. `within_1_minute`, `within_10_minutes`: the shares
    whose P50 was so near. `median_error_seconds`: of the P50, of those that happened.
    `median_width_seconds`: from P50 to P90. Null: of no promise.
    """

    quantity: Literal["start", "end"]
    promises: int
    within_1_minute: float | None
    within_10_minutes: float | None
    median_error_seconds: float | None
    median_width_seconds: float | None


class PromiseOut(TypedDict):
    """A promise beside what happened. Seconds count from the promise; null: not known."""

    job_id: str
    kind: Literal["submission", "hourly"]
    made_at: Timestamp
    start_p50_seconds: float | None
    start_p90_seconds: float | None
    start_seconds: float | None
    end_p50_seconds: float | None
    end_p90_seconds: float | None
    end_seconds: float | None


class CalibrationOut(TypedDict):
    """What promises were worth: of the jobs that ended last, and that the reader may see.

    `bins`: whether they were held as often as they said; `sharpness`: how near they were.
    """

    cluster_id: str
    jobs: int
    bins: list[CalibrationBinOut]
    sharpness: list[SharpnessOut]
    promises: list[PromiseOut]
