"""The table of what was changed, by whom. Rows are added and, after their time, deleted."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Index
from sqlmodel import Field, SQLModel

from backend.clocktime import utc_now
from backend.columns import Json, UtcDateTime
from backend.ids import new_id


class AuditRecord(SQLModel, table=True):
    """One change.

    It names rows without foreign keys: they may be gone, the record stays. `actor_*`: who did it;
    `credential`: with which token or session. `tenant_id`: whose affair it is; None for what
    concerns all, such as clusters. `before`, `after`: what is shown of the row, never a secret. A
    trigger refuses every update.
    """

    __tablename__ = "audit_records"
    __table_args__ = (
        Index("ix_audit_records_tenant", "tenant_id", "id"),
        Index("ix_audit_records_actor", "actor_name", "id"),
        Index("ix_audit_records_actor_id", "actor_id", "id"),
        Index("ix_audit_records_action", "action", "id"),
        Index("ix_audit_records_target", "target_id", "id"),
    )

    id: str = Field(default_factory=lambda: new_id("aud"), primary_key=True, max_length=40)
    at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime, index=True)
    actor_kind: str = Field(max_length=20)
    actor_id: str | None = Field(default=None, max_length=40)
    actor_name: str = Field(max_length=200)
    actor_tenant_id: str | None = Field(default=None, max_length=40)
    credential: str | None = Field(default=None, max_length=40)
    tenant_id: str | None = Field(default=None, max_length=40)
    action: str = Field(max_length=60)
    target_kind: str = Field(max_length=20)
    target_id: str = Field(max_length=40)
    before: dict[str, Any] = Field(default_factory=dict, sa_type=Json)
    after: dict[str, Any] = Field(default_factory=dict, sa_type=Json)
    request_id: str | None = Field(default=None, max_length=64)
