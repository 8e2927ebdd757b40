"""Tables of use and cost: days that were summed up, and prices.

A day's rows are a pure function of the raw rows (allocations, rounds, jobs, attempts) and stay when
those are deleted.
"""

from __future__ import annotations

import datetime as dt
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy import Index, UniqueConstraint
from sqlmodel import Field, SQLModel

from backend.clocktime import utc_now
from backend.columns import UtcDateTime
from backend.ids import new_id

ALL_TENANTS = ""
"""Stands in rows of sums for all tenants: so that a year of a large cluster is read quickly."""

_WITHOUT_ROWID = {"sqlite_with_rowid": False}  # the key is the table: rows lie in its order


class UsageDay(SQLModel, table=True):
    """GPU milliseconds of one day that jobs held on one GPU type.

    `dimension` says what `name` is: tenant, user, model or label (`key=value`). Each is a sum of
    its own over the same jobs; a job with two labels is in both. The other columns are parts of
    `allocated_ms`: `profile_ms` for measuring, `restart_ms` starting, restoring or ending,
    `lost_ms` on work that a failure undid, `useful_ms` times efficiency; `unmeasured_ms`: without a
    measured efficiency, which then counts as 1.
    """

    __tablename__ = "usage_days"
    __table_args__ = (_WITHOUT_ROWID,)

    cluster_id: str = Field(foreign_key="clusters.id", primary_key=True, max_length=40)
    dimension: str = Field(primary_key=True, max_length=10)
    tenant_id: str = Field(primary_key=True, max_length=40)
    day: dt.date = Field(primary_key=True)
    name: str = Field(primary_key=True, max_length=200)
    gpu_type: str = Field(primary_key=True, max_length=64)
    allocated_ms: int = Field(sa_type=sa.BigInteger)
    profile_ms: int = Field(sa_type=sa.BigInteger)
    restart_ms: int = Field(sa_type=sa.BigInteger)
    lost_ms: int = Field(sa_type=sa.BigInteger)
    useful_ms: int = Field(sa_type=sa.BigInteger)
    unmeasured_ms: int = Field(sa_type=sa.BigInteger)


class UsageMonth(SQLModel, table=True):
    """The sums of UsageDay over a month, whose days were all summed up. `month`: its first day."""

    __tablename__ = "usage_months"
    __table_args__ = (_WITHOUT_ROWID,)

    cluster_id: str = Field(foreign_key="clusters.id", primary_key=True, max_length=40)
    dimension: str = Field(primary_key=True, max_length=10)
    tenant_id: str = Field(primary_key=True, max_length=40)
    month: dt.date = Field(primary_key=True)
    name: str = Field(primary_key=True, max_length=200)
    gpu_type: str = Field(primary_key=True, max_length=64)
    allocated_ms: int = Field(sa_type=sa.BigInteger)
    profile_ms: int = Field(sa_type=sa.BigInteger)
    restart_ms: int = Field(sa_type=sa.BigInteger)
    lost_ms: int = Field(sa_type=sa.BigInteger)
    useful_ms: int = Field(sa_type=sa.BigInteger)
    unmeasured_ms: int = Field(sa_type=sa.BigInteger)


class WaitDay(SQLModel, table=True):
    """How long the jobs waited that were first started on a day: from submission to start.

    `sketch`: how many waited how long, as backend/usage/sketch.py packs it.
    """

    __tablename__ = "wait_days"
    __table_args__ = (_WITHOUT_ROWID,)

    cluster_id: str = Field(foreign_key="clusters.id", primary_key=True, max_length=40)
    dimension: str = Field(primary_key=True, max_length=10)
    tenant_id: str = Field(primary_key=True, max_length=40)
    day: dt.date = Field(primary_key=True)
    name: str = Field(primary_key=True, max_length=200)
    jobs: int
    waited_ms: int = Field(sa_type=sa.BigInteger)
    longest_ms: int = Field(sa_type=sa.BigInteger)
    sketch: bytes


class CapacityDay(SQLModel, table=True):
    """GPU milliseconds of one day that a GPU type was usable.

    `fragmented_ms`, `reserved_ms`: of these, free and of no use to the jobs that waited.
    """

    __tablename__ = "capacity_days"
    __table_args__ = (_WITHOUT_ROWID,)

    cluster_id: str = Field(foreign_key="clusters.id", primary_key=True, max_length=40)
    day: dt.date = Field(primary_key=True)
    gpu_type: str = Field(primary_key=True, max_length=64)
    capacity_ms: int = Field(sa_type=sa.BigInteger)
    fragmented_ms: int = Field(sa_type=sa.BigInteger)
    reserved_ms: int = Field(sa_type=sa.BigInteger)


class SummedDay(SQLModel, table=True):
    """A day of a cluster whose rows above are whole: it is read from them, others from raw rows."""

    __tablename__ = "summed_days"

    cluster_id: str = Field(foreign_key="clusters.id", primary_key=True, max_length=40)
    day: dt.date = Field(primary_key=True)
    version: int
    summed_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)


class GpuPrice(SQLModel, table=True):
    """What a GPU-hour of a type costs from a day on, until the next price of the type.

    `micros`: millionths of the currency's unit.
    """

    __tablename__ = "gpu_prices"
    __table_args__ = (
        UniqueConstraint("cluster_id", "gpu_type", "valid_from"),
        Index("ix_gpu_prices_cluster", "cluster_id", "valid_from"),
    )

    id: str = Field(default_factory=lambda: new_id("pri"), primary_key=True, max_length=40)
    cluster_id: str = Field(foreign_key="clusters.id", max_length=40)
    gpu_type: str = Field(max_length=64)
    valid_from: dt.date
    micros: int = Field(sa_type=sa.BigInteger)
    currency: str = Field(max_length=3)
    version: int = 1
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
