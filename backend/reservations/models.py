"""The table of reservations: GPUs of a live cluster kept for a tenant or a job."""

from __future__ import annotations

from datetime import datetime

from sqlmodel import Field, SQLModel

from backend.clocktime import utc_now
from backend.columns import UtcDateTime
from backend.ids import new_id


class ClusterReservation(SQLModel, table=True):
    """A reservation for either `tenant_id` or `job_id`.

    `*_seconds`: cluster time; without an end it lasts until it is removed.
    """

    __tablename__ = "reservations"

    id: str = Field(default_factory=lambda: new_id("res"), primary_key=True, max_length=40)
    cluster_id: str = Field(foreign_key="clusters.id", index=True, max_length=40)
    gpu_type: str = Field(max_length=64)
    gpu_count: int
    tenant_id: str | None = Field(default=None, foreign_key="tenants.id", max_length=40)
    job_id: str | None = Field(default=None, foreign_key="jobs.id", max_length=40)
    start_seconds: float
    end_seconds: float | None = None
    owner_id: str = Field(foreign_key="users.id", max_length=40)
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
