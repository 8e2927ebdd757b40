"""Tables of forecasts: the latest of every job, promises that are kept, and what-if requests."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Index
from sqlmodel import Field, SQLModel

from backend.clocktime import utc_now
from backend.columns import BigId, CompressedJson, Json, UtcDateTime
from backend.ids import new_id
from backend.operations.models import OperationState
from maat.vocabulary import ForecastBasis


class ClusterForecast(SQLModel, table=True):
    """The latest forecast of a cluster: a row of work too (worker/work_queue.py).

    `state`: queued, running, succeeded or failed; `detail`: why it failed. `round_number`: the last
    round that it follows; `made_seconds`: cluster time, `draws`: how many were played.
    `compute_seconds`: the CPU time that it took. The moments (`*_at`) are wall time. `first_at`,
    `first_seconds`: when the last first forecasts of new jobs were made, and their CPU time.
    """

    __tablename__ = "cluster_forecasts"

    cluster_id: str = Field(foreign_key="clusters.id", primary_key=True, max_length=40)
    state: str = Field(default=OperationState.QUEUED.value, max_length=40)
    detail: str | None = Field(default=None, max_length=500)
    round_number: int = 0
    made_seconds: float | None = None
    draws: int = 0
    compute_seconds: float = 0.0
    started_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    heartbeat_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    finished_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    first_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    first_seconds: float = 0.0


REST = 3.0
"""After a forecast a cluster has none for so many times the CPU time that it took; after first
forecasts of new jobs, no others of these."""


def rested_at(row: ClusterForecast) -> datetime | None:
    """Return from when on the next forecast may begin; None before the first has ended."""
    if row.finished_at is None:
        return None
    return row.finished_at + timedelta(seconds=REST * row.compute_seconds)


def rested_for_new_jobs_at(row: ClusterForecast) -> datetime | None:
    """Return from when on jobs that have come since may get a first forecast; None: at once."""
    if row.first_at is None:
        return None
    return row.first_at + timedelta(seconds=REST * row.first_seconds)


class ForecastInterest(SQLModel, table=True):
    """When somebody last read forecasts of a cluster, wall time (interest.py)."""

    __tablename__ = "forecast_interest"

    cluster_id: str = Field(foreign_key="clusters.id", primary_key=True, max_length=40)
    at: datetime = Field(sa_type=UtcDateTime)


class JobForecastRow(SQLModel, table=True):
    """The latest forecast of a job that has not ended. `*_p50`, `*_p90` are cluster seconds.

    None: later than the draws go. `holds_gpus`: it held some, so that its start is over. `spans`:
    rows of [cluster second, GPU type or None, GPUs] in the central draw. `basis`: a word of
    ForecastBasis; `precedents`: how many ended jobs were drawn from.
    """

    __tablename__ = "job_forecasts"

    job_id: str = Field(foreign_key="jobs.id", primary_key=True, max_length=40)
    cluster_id: str = Field(foreign_key="clusters.id", index=True, max_length=40)
    round_number: int
    made_seconds: float
    draws: int
    holds_gpus: bool
    start_p50: float | None = None
    start_p90: float | None = None
    end_p50: float | None = None
    end_p90: float | None = None
    spans: list[list[Any]] = Field(default_factory=list, sa_type=Json)
    basis: str = Field(default=ForecastBasis.WORK.value, max_length=40)
    precedents: int = 0


class ForecastPromise(SQLModel, table=True):
    """A forecast that is kept, to be compared with what happens. `kind`: of PromiseKind."""

    __tablename__ = "forecast_promises"
    __table_args__ = (
        Index("ix_forecast_promises_job", "job_id", "id"),
        Index("ix_forecast_promises_cluster", "cluster_id", "made_seconds"),
    )

    id: int | None = Field(default=None, primary_key=True, sa_type=BigId)
    job_id: str = Field(foreign_key="jobs.id", max_length=40)
    cluster_id: str = Field(foreign_key="clusters.id", max_length=40)
    kind: str = Field(max_length=40)
    made_seconds: float
    holds_gpus: bool
    start_p50: float | None = None
    start_p90: float | None = None
    end_p50: float | None = None
    end_p90: float | None = None


class WhatIf(SQLModel, table=True):
    """A question what would happen, and its answer.

    `request`: the body as it was checked. `result`: by job id, cluster seconds; None until it is
    worked out.
    """

    __tablename__ = "forecasts"

    id: str = Field(default_factory=lambda: new_id("fct"), primary_key=True, max_length=40)
    cluster_id: str = Field(foreign_key="clusters.id", max_length=40)
    owner_id: str = Field(foreign_key="users.id", index=True, max_length=40)
    tenant_id: str = Field(foreign_key="tenants.id", index=True, max_length=40)
    operation_id: str = Field(foreign_key="operations.id", index=True, max_length=40)
    request: dict[str, Any] = Field(sa_type=Json)
    result: Any = Field(default=None, nullable=True, sa_type=CompressedJson)
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
