"""Tables of kept reports, of schedules, and of deliveries."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import LargeBinary, UniqueConstraint
from sqlmodel import Field, SQLModel

from backend.clocktime import utc_now
from backend.columns import CompressedJson, Json, UtcDateTime
from backend.ids import new_id


class Report(SQLModel, table=True):
    """A kept report. It never changes.

    `tenant_id`: whose report it is; None for one of the whole cluster. `period_*`: cluster time.
    `checksum`: SHA-256 of the document as JSON. `document` is large: lists must not load it.
    """

    __tablename__ = "reports"

    id: str = Field(default_factory=lambda: new_id("rep"), primary_key=True, max_length=40)
    cluster_id: str = Field(foreign_key="clusters.id", index=True, max_length=40)
    tenant_id: str | None = Field(default=None, foreign_key="tenants.id", index=True, max_length=40)
    owner_id: str = Field(foreign_key="users.id", max_length=40)
    schedule_id: str | None = Field(default=None, index=True, max_length=40)
    period_name: str | None = Field(default=None, max_length=40)
    period_start: datetime = Field(sa_type=UtcDateTime)
    period_end: datetime = Field(sa_type=UtcDateTime)
    is_partial: bool = False
    title: str = Field(max_length=500)
    checksum: str = Field(max_length=64)
    document: Any = Field(default=None, sa_type=CompressedJson)
    made_at: datetime = Field(default_factory=utc_now, index=True, sa_type=UtcDateTime)


class ReportSchedule(SQLModel, table=True):
    """When a report is made, and where it goes. Times are wall times.

    `tenant_id`: of whom it tells; None for the whole cluster. `every`: a word of ScheduleEvery.
    `channel`: a word of Channel. `url` and `secret` (encrypted) are of webhooks.
    `next_due_at`: when the next one is due.
    """

    __tablename__ = "report_schedules"

    id: str = Field(default_factory=lambda: new_id("rsc"), primary_key=True, max_length=40)
    cluster_id: str = Field(foreign_key="clusters.id", index=True, max_length=40)
    tenant_id: str | None = Field(default=None, foreign_key="tenants.id", index=True, max_length=40)
    owner_id: str = Field(foreign_key="users.id", max_length=40)
    name: str = Field(max_length=200)
    every: str = Field(max_length=40)
    hour: int = 6
    channel: str = Field(max_length=40)
    url: str | None = Field(default=None, max_length=2000)
    secret: bytes | None = Field(default=None, sa_type=LargeBinary)
    forms: list[str] = Field(default_factory=list, sa_type=Json)
    paper: str = Field(default="a4", max_length=40)
    active: bool = True
    next_due_at: datetime = Field(index=True, sa_type=UtcDateTime)
    version: int = 1
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)


class ReportDelivery(SQLModel, table=True):
    """One report on its way: at most one for each schedule and time at which it was due.

    `tries` that were made; the next is not before `next_try_at`. `state`: as an operation's.
    `answered`: the webhook's HTTP status. `files`: names below the folder of reports.
    """

    __tablename__ = "report_deliveries"
    __table_args__ = (UniqueConstraint("schedule_id", "due_at"),)

    id: str = Field(default_factory=lambda: new_id("rdl"), primary_key=True, max_length=40)
    schedule_id: str = Field(foreign_key="report_schedules.id", max_length=40)
    due_at: datetime = Field(sa_type=UtcDateTime)
    report_id: str | None = Field(default=None, foreign_key="reports.id", index=True, max_length=40)
    state: str = Field(default="queued", index=True, max_length=40)
    tries: int = 0
    next_try_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
    answered: int | None = None
    message: str = Field(default="", max_length=1000)
    files: list[str] = Field(default_factory=list, sa_type=Json)
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
    started_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    finished_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    heartbeat_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
