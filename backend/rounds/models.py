"""Tables of committed rounds and of changes not yet sent to the executor."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Index, UniqueConstraint
from sqlmodel import Field, SQLModel

from backend.clocktime import utc_now
from backend.columns import BigId, CompressedJson, Json, UtcDateTime


class Round(SQLModel, table=True):
    """One round. Unique by (cluster, number): only one of two workers can commit it.

    `record` is the whole decision (matrix, grants, reasons, report); a list must not load it
    (repository.summaries). `gpus_by_type`: {type: {"used": GPUs held, "capacity": usable GPUs}},
    with "fragmented" and "reserved" where they are not zero (worker/rounds/capacity.py).
    `policy_version`: digest of the policy's parameters; empty for rounds that stored none.
    """

    __tablename__ = "rounds"
    __table_args__ = (
        UniqueConstraint("cluster_id", "number"),
        Index("ix_rounds_cluster_at", "cluster_id", "at_seconds"),
    )

    id: int | None = Field(default=None, primary_key=True, sa_type=BigId)
    cluster_id: str = Field(foreign_key="clusters.id", max_length=40)
    number: int
    at_seconds: float
    active_jobs: int
    running_jobs: int
    pending_jobs: int
    gpus_used: int
    gpus_total: int
    changes: int
    policy: str = Field(max_length=100)
    policy_version: str = Field(default="", max_length=40)
    placer: str = Field(max_length=100)
    status: str = Field(max_length=40)
    method: str = Field(max_length=100)
    objective: float | None = None
    bound: float | None = None
    gap: float | None = None
    fallback: bool = False
    message: str = ""
    solve_seconds: float | None = None
    policy_seconds: float
    place_seconds: float
    prices: dict[str, float] = Field(default_factory=dict, sa_type=Json)
    gpus_by_type: dict[str, Any] = Field(default_factory=dict, sa_type=Json)
    committed_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
    record: Any = Field(default=None, sa_type=CompressedJson)


class OutboxMessage(SQLModel, table=True):
    """Changes of a committed round, stored until the executor has applied them."""

    __tablename__ = "outbox"
    __table_args__ = (Index("ix_outbox_cluster", "cluster_id", "applied_at"),)

    id: int | None = Field(default=None, primary_key=True, sa_type=BigId)
    cluster_id: str = Field(foreign_key="clusters.id", max_length=40)
    round_number: int
    payload: dict[str, Any] = Field(default_factory=dict, sa_type=Json)
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
    applied_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
