"""Tables of sweeps, of points by their content, and of each sweep's points."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlmodel import Column, Field, SQLModel

from backend.clocktime import utc_now
from backend.columns import CompressedModel, Json, UtcDateTime
from backend.ids import new_id
from backend.sweeps.stored import StoredSweep


class Sweep(SQLModel, table=True):
    """A sweep. `notes`: on its points, as they were asked for; none of an earlier version's."""

    __tablename__ = "sweeps"

    id: str = Field(default_factory=lambda: new_id("swp"), primary_key=True, max_length=40)
    name: str = Field(max_length=200)
    owner_id: str = Field(foreign_key="users.id", index=True, max_length=40)
    tenant_id: str = Field(foreign_key="tenants.id", index=True, max_length=40)
    request: StoredSweep = Field(sa_column=Column(CompressedModel(StoredSweep), nullable=False))
    notes: list[str] = Field(default_factory=list, sa_type=Json)
    operation_id: str = Field(foreign_key="operations.id", index=True, max_length=40)
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)


class SweepPoint(SQLModel, table=True):
    """One simulation, shared by all sweeps that need it.

    `key`: hash of its content, so that it runs once. `state`: as an operation's. `heartbeat_at`:
    the worker's last sign of life.
    """

    __tablename__ = "sweep_points"

    key: str = Field(primary_key=True, max_length=64)
    state: str = Field(default="queued", index=True, max_length=40)
    figures: dict[str, Any] | None = Field(default=None, sa_type=Json)
    error: dict[str, Any] | None = Field(default=None, sa_type=Json)
    heartbeat_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    started_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    finished_at: datetime | None = Field(default=None, sa_type=UtcDateTime)


class SweepMember(SQLModel, table=True):
    """A point of a sweep.

    `settings`: the value of every axis; `position` orders the points of a sweep.
    """

    __tablename__ = "sweep_members"

    sweep_id: str = Field(foreign_key="sweeps.id", primary_key=True, max_length=40)
    position: int = Field(primary_key=True)
    point_key: str = Field(foreign_key="sweep_points.key", index=True, max_length=64)
    settings: dict[str, Any] = Field(sa_type=Json)
    seed: int
