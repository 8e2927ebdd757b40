"""Rounds: what was decided, from what, and at which prices."""

from __future__ import annotations

from typing import TypedDict

from maat.client.resources.jobs import Reason


class RoundSummary(TypedDict):
    number: int
    at: str
    active_jobs: int
    running_jobs: int
    pending_jobs: int
    gpus_used: int
    gpus_total: int
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
    gpus_by_type: dict[str, int]
    capacity_by_type: dict[str, int]


class RoundConfiguration(TypedDict):
    gpu_type: str
    gpu_count: int
    node_count: int


class RoundPairs(TypedDict):
    """The feasible cells of the goodput matrix: row `job`, column `column`, effective samples/s, and the policy's utility.

    Of another tenant's job there is the chosen cell alone, without its goodput.
    """

    job: list[int]
    column: list[int]
    goodput: list[float | None]
    utility: list[float] | None


class RoundRecord(TypedDict):
    """`others`: rows of other tenants' jobs, whose ids are keys of this answer."""

    round: int
    at_seconds: float
    job_ids: list[str]
    job_names: list[str]
    configurations: list[RoundConfiguration]
    pairs: RoundPairs
    chosen: list[int | None]
    grants: dict[str, dict[str, object]]
    reasons: dict[str, Reason]
    report: dict[str, object]
    others: list[int]


class Round(RoundSummary):
    record: RoundRecord | None
