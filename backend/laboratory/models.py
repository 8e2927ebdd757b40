"""The table of CPU seconds that tenants use for simulations and other work they ask for."""

from __future__ import annotations

from datetime import datetime

from sqlmodel import Field, SQLModel

from backend.columns import UtcDateTime


class LaboratoryUse(SQLModel, table=True):
    """CPU seconds of one tenant's work of one kind within an hour. `kind`: as of operations."""

    __tablename__ = "laboratory_use"

    tenant_id: str = Field(foreign_key="tenants.id", primary_key=True, max_length=40)
    kind: str = Field(primary_key=True, max_length=40)
    hour: datetime = Field(primary_key=True, sa_type=UtcDateTime)
    cpu_seconds: float = 0.0
