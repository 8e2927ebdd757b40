"""Tables of simulations: the request, and a row for each of its runs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlmodel import Column, Field, SQLModel

from backend.clocktime import utc_now
from backend.columns import CompressedJson, CompressedModel, Json, UtcDateTime
from backend.ids import new_id
from backend.simulations.stored import StoredSimulation


class Simulation(SQLModel, table=True):
    __tablename__ = "simulations"

    id: str = Field(default_factory=lambda: new_id("sim"), primary_key=True, max_length=40)
    name: str = Field(max_length=200)
    owner_id: str = Field(foreign_key="users.id", index=True, max_length=40)
    tenant_id: str = Field(foreign_key="tenants.id", index=True, max_length=40)
    request: StoredSimulation = Field(
        sa_column=Column(CompressedModel(StoredSimulation), nullable=False)
    )
    operation_id: str = Field(foreign_key="operations.id", index=True, max_length=40)
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)


class SimulationRun(SQLModel, table=True):
    """A run of a simulation.

    `position` orders the runs as requested; `trace` is the number of the request's trace. `state`:
    as an operation's. `done`: finished jobs. `heartbeat_at`: the worker's last sign of life.
    `series`: what each job held and achieved over time; null of a run of an earlier version.
    `result` and `series` are large: lists must not load them.
    """

    __tablename__ = "simulation_runs"

    id: str = Field(default_factory=lambda: new_id("run"), primary_key=True, max_length=40)
    simulation_id: str = Field(foreign_key="simulations.id", index=True, max_length=40)
    position: int = 0
    policy: str = Field(max_length=100)
    policy_parameters: dict[str, Any] = Field(default_factory=dict, sa_type=Json)
    placer: str = Field(max_length=100)
    seed: int = 0
    trace: int = 0
    done: float = 0.0
    heartbeat_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    state: str = Field(default="queued", max_length=40)
    summary: dict[str, Any] | None = Field(default=None, sa_type=Json)
    result: Any = Field(default=None, nullable=True, sa_type=CompressedJson)
    series: Any = Field(default=None, nullable=True, sa_type=CompressedJson)
    error: dict[str, Any] | None = Field(default=None, sa_type=Json)
    started_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    finished_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
