"""Rounds, their records, and their timeline."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from maat.api.fields import AsStored, Timestamp
from maat.api.job_answers import ReasonOut


class RoundOut(TypedDict):
    """A round without its record.

    `gap`: the largest relative distance of the decision from the optimum; `prices`: worth of one
    GPU by type.
    """

    number: int
    at: Timestamp
    active_jobs: int
    running_jobs: int
    pending_jobs: int
    gpus_used: int
    gpus_total: int
    gpus_by_type: Annotated[dict[str, int], Field(description="GPUs in use.")]
    capacity_by_type: Annotated[dict[str, int], Field(description="Usable GPUs.")]
    changes: int
    policy: str
    placer: str
    status: str
    method: str
    objective: float | None
    bound: float | None
    gap: float | None
    fallback: bool
    message: str
    solve_seconds: float | None
    policy_seconds: float
    place_seconds: float
    prices: dict[str, float | None]
    committed_at: Timestamp


class RoundDetailOut(RoundOut):
    """A round with its record.

    The record has the goodput matrix over feasible pairs, the chosen columns, grants, reasons and
    the solver's report. `record.others`: rows of other tenants' jobs, which have keys such as
    `other-1` within this answer; their GPUs and prices are unchanged.
    """

    record: Annotated[RoundRecord | None, AsStored]


class Steps(TypedDict):
    """Values that hold from their time to the next."""

    at: list[Timestamp]
    value: list[int]


class TimelineSeries(TypedDict):
    """GPUs and jobs over time."""

    gpus_used_by_type: dict[str, Steps]
    capacity_by_type: dict[str, Steps]
    running_jobs: Steps
    pending_jobs: Steps


class TimelineOut(TypedDict):
    """Rounds over time. `rounds_per_point` is above 1 if rounds were left out."""

    series: TimelineSeries
    round_numbers: Annotated[
        list[int], Field(description="The rounds, in the order of the times of the series.")
    ]
    points: int
    rounds_per_point: int


class RoundConfiguration(TypedDict):
    gpu_type: str
    gpu_count: int
    node_count: int


class RoundPairs(TypedDict):
    """The feasible cells of the goodput matrix.

    Row `job`, column `column`, effective samples/s, and the policy's utility. Another tenant's job
    has only the chosen cell, without its goodput.
    """

    job: list[int]
    column: list[int]
    goodput: list[float | None]
    utility: list[float] | None


class RoundRecord(TypedDict):
    """The decision of a round.

    `others`: the rows of other tenants' jobs; their ids are keys without meaning. Four lists have
    an entry for each row. `chosen`, `runner_up` and `alone` are columns: the configuration that the
    job got, the second best, and the one that it would have on an empty cluster; null if there is
    none, or if the policy does not tell it. `why`: sentences that give the reason.
    """

    round: int
    at_seconds: float
    job_ids: list[str]
    job_names: list[str]
    configurations: list[RoundConfiguration]
    pairs: RoundPairs
    chosen: list[int | None]
    grants: dict[str, dict[str, object]]
    reasons: dict[str, ReasonOut]
    report: dict[str, object]
    others: list[int]
    runner_up: list[int | None]
    alone: list[int | None]
    why: list[list[str]]
