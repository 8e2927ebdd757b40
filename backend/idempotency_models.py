"""The table of answers given to requests that carried an Idempotency-Key."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import UniqueConstraint
from sqlmodel import Field, SQLModel

from backend.clocktime import utc_now
from backend.columns import BigId, Json, UtcDateTime


class IdempotencyKey(SQLModel, table=True):
    """A key, written in the transaction of the request that it answers.

    `digest`: of the request; `headers`: those to repeat.
    """

    __tablename__ = "idempotency_keys"
    __table_args__ = (UniqueConstraint("principal", "route", "key"),)

    id: int | None = Field(default=None, primary_key=True, sa_type=BigId)
    principal: str = Field(max_length=40)
    route: str = Field(max_length=200)
    key: str = Field(max_length=200)
    digest: str = Field(max_length=64)
    status: int
    body: Any = Field(default=None, sa_type=Json)
    headers: dict[str, str] = Field(default_factory=dict, sa_type=Json)
    created_at: datetime = Field(default_factory=utc_now, index=True, sa_type=UtcDateTime)
