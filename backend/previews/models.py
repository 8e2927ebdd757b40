"""The table of previews of rounds."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlmodel import Field, SQLModel

from backend.clocktime import utc_now
from backend.columns import CompressedJson, Json, UtcDateTime
from backend.ids import new_id


class RoundPreview(SQLModel, table=True):
    """A preview: what was asked, of which version of the cluster, and what came of it.

    `request`: as asked; `wanted`: policy, placer, their parameters and round seconds after the
    change. `result`: as `maat.api.previews.PreviewResultOut`, of jobs only their ids; None until it
    has succeeded.
    """

    __tablename__ = "round_previews"

    id: str = Field(default_factory=lambda: new_id("prv"), primary_key=True, max_length=40)
    cluster_id: str = Field(foreign_key="clusters.id", index=True, max_length=40)
    owner_id: str = Field(foreign_key="users.id", index=True, max_length=40)
    tenant_id: str = Field(foreign_key="tenants.id", index=True, max_length=40)
    operation_id: str = Field(foreign_key="operations.id", index=True, max_length=40)
    cluster_version: int
    request: dict[str, Any] = Field(default_factory=dict, sa_type=Json)
    wanted: dict[str, Any] = Field(default_factory=dict, sa_type=Json)
    result: Any = Field(default=None, nullable=True, sa_type=CompressedJson)
    created_at: datetime = Field(default_factory=utc_now, index=True, sa_type=UtcDateTime)
