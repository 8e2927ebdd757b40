"""The table of experiments."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlmodel import Column, Field, SQLModel

from backend.clocktime import utc_now
from backend.columns import CompressedJson, CompressedModel, UtcDateTime
from backend.experiments.stored import StoredExperiment
from backend.ids import new_id


class Experiment(SQLModel, table=True):
    """An experiment. `kind`: of its request. `runs`: those that have ended, as they are answered.

    One worker plays all runs; another that takes over plays only those that are missing. `runs` are
    large: lists must not load them.
    """

    __tablename__ = "experiments"

    id: str = Field(default_factory=lambda: new_id("exp"), primary_key=True, max_length=40)
    kind: str = Field(max_length=40)
    name: str = Field(max_length=200)
    owner_id: str = Field(foreign_key="users.id", index=True, max_length=40)
    tenant_id: str = Field(foreign_key="tenants.id", index=True, max_length=40)
    request: StoredExperiment = Field(
        sa_column=Column(CompressedModel(StoredExperiment), nullable=False)
    )
    runs: Any = Field(default_factory=list, nullable=False, sa_type=CompressedJson)
    operation_id: str = Field(foreign_key="operations.id", index=True, max_length=40)
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
