"""The table of workers that show that they live."""

from __future__ import annotations

from datetime import datetime

from sqlmodel import Field, SQLModel

from backend.clocktime import utc_now
from backend.columns import Json, UtcDateTime


class WorkerHeartbeat(SQLModel, table=True):
    """A worker, by the name that Celery gives it, and when it last said that it listens.

    `queues`: from which it takes tasks. `at` is by the database's clock.
    """

    __tablename__ = "worker_heartbeats"

    name: str = Field(primary_key=True, max_length=200)
    queues: list[str] = Field(default_factory=list, sa_type=Json)
    version: str = Field(max_length=40)
    started_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
    at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
