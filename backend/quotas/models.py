"""The table of quotas: what a tenant may hold of one GPU type of a live cluster."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Index
from sqlmodel import Field, SQLModel

from backend.clocktime import utc_now
from backend.columns import UtcDateTime


class GpuQuota(SQLModel, table=True):
    """Counts are GPUs. `ceiling`: None for no bound. `changed_at`: wall time."""

    __tablename__ = "gpu_quotas"
    __table_args__ = (Index("ix_gpu_quotas_tenant", "tenant_id"),)

    cluster_id: str = Field(foreign_key="clusters.id", primary_key=True, max_length=40)
    tenant_id: str = Field(foreign_key="tenants.id", primary_key=True, max_length=40)
    gpu_type: str = Field(primary_key=True, max_length=64)
    guaranteed: int = 0
    ceiling: int | None = None
    version: int = 1
    changed_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
