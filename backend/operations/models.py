"""The table of long work: its kind, progress and cancellation."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlmodel import Field, SQLModel

from backend.clocktime import utc_now
from backend.columns import Json, UtcDateTime
from backend.ids import new_id


class OperationState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


ENDED = frozenset({OperationState.SUCCEEDED, OperationState.FAILED, OperationState.CANCELLED})


class Operation(SQLModel, table=True):
    """An operation. `done` of `total`, in `unit`. `cpu_seconds`: what it has taken until now.

    `heartbeat_at`: the last sign of life of its worker. `updated_at` changes with every update.
    """

    __tablename__ = "operations"

    id: str = Field(default_factory=lambda: new_id("op"), primary_key=True, max_length=40)
    kind: str = Field(max_length=40)
    state: str = Field(default=OperationState.QUEUED, index=True, max_length=40)
    done: float = 0.0
    total: float = 0.0
    unit: str = Field(default="", max_length=40)
    message: str = ""
    error: dict[str, Any] | None = Field(default=None, sa_type=Json)
    result_url: str | None = Field(default=None, max_length=500)
    cancel_requested: bool = False
    cpu_seconds: float = 0.0
    owner_id: str = Field(foreign_key="users.id", index=True, max_length=40)
    tenant_id: str = Field(foreign_key="tenants.id", index=True, max_length=40)
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
    started_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    finished_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    heartbeat_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    updated_at: datetime = Field(
        default_factory=utc_now,
        index=True,
        sa_type=UtcDateTime,
        sa_column_kwargs={"onupdate": utc_now},
    )
