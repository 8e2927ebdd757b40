"""Rounds and timelines as the API speaks of them."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from backend.clocktime import shown_at
from backend.clusters.models import Cluster
from backend.rounds.models import Round
from backend.rounds.record_view import record_seen
from backend.sight import Sight
from backend.web.fields import Timestamp


class RoundOut(BaseModel):
    """A round without its record. `gap`: how far the decision may be from the best one, as a share; `prices`: worth of one GPU by type."""

    number: int
    at: Timestamp
    active_jobs: int
    running_jobs: int
    pending_jobs: int
    gpus_used: int
    gpus_total: int
    gpus_by_type: dict[str, int] = Field(description="GPUs in use.")
    capacity_by_type: dict[str, int] = Field(description="GPUs that may be used.")
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

    @classmethod
    def of(cls, found: Round, cluster: Cluster, sight: Sight) -> RoundOut:
        return cls(**_members(found, cluster, sight))


class RoundDetailOut(RoundOut):
    """A round with its record: the goodput matrix over feasible pairs, the chosen columns, grants, reasons and the solver's report.

    `record.others`: rows of other tenants' jobs, which go by keys such as `other-1` within this answer; their GPUs and prices count as they did.
    """

    record: dict[str, Any] | None

    @classmethod
    def of(cls, found: Round, cluster: Cluster, sight: Sight) -> RoundDetailOut:
        record = None if found.record is None else record_seen(found.record, sight)
        return cls(**_members(found, cluster, sight), record=record)


class Steps(BaseModel):
    """Values that hold from their time to the next."""

    at: list[Timestamp]
    value: list[int]


class TimelineSeries(BaseModel):
    gpus_used_by_type: dict[str, Steps]
    capacity_by_type: dict[str, Steps]
    running_jobs: Steps
    pending_jobs: Steps


class TimelineOut(BaseModel):
    """What followed round by round. `rounds_per_point` is above 1 where rounds were left out to keep it short."""

    series: TimelineSeries
    points: int
    rounds_per_point: int


_SAME = set(RoundOut.model_fields) - {"at", "gpus_by_type", "capacity_by_type", "message", "prices"}


def _members(found: Round, cluster: Cluster, sight: Sight) -> dict[str, Any]:
    used, capacity = by_type(found)
    told = {"message": sight.text(found.message), "prices": sight.limits(found.prices)}
    same = found.model_dump(include=_SAME) | told
    return {
        **same,
        "at": shown_at(cluster, found.at_seconds),
        "gpus_by_type": used,
        "capacity_by_type": capacity,
    }


def by_type(found: Round) -> tuple[dict[str, int], dict[str, int]]:
    """GPUs used and usable, by type."""
    stored = found.gpus_by_type
    return {t: counts["used"] for t, counts in stored.items()}, {
        t: counts["capacity"] for t, counts in stored.items()
    }
