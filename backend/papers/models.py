"""Tables of reproductions, of their items, of runs by their content, and of each item's runs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlmodel import Field, SQLModel

from backend.clocktime import utc_now
from backend.columns import CompressedJson, UtcDateTime
from backend.ids import new_id


class Reproduction(SQLModel, table=True):
    """Items of a paper that are made again. `size`: of its runs, as of `maat.papers.bench`."""

    __tablename__ = "reproductions"

    id: str = Field(default_factory=lambda: new_id("rpr"), primary_key=True, max_length=40)
    paper: str = Field(max_length=100)
    size: str = Field(max_length=40)
    owner_id: str = Field(foreign_key="users.id", index=True, max_length=40)
    tenant_id: str = Field(foreign_key="tenants.id", index=True, max_length=40)
    operation_id: str = Field(foreign_key="operations.id", index=True, max_length=40)
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)


class ReproducedItem(SQLModel, table=True):
    """An item of a reproduction.

    `position` orders the items as the paper does. `state`: as an operation's: a worker claims an
    item twice, to find its runs and to show what came out of them. `runs`: how many it needs; null
    until that is known. `result`: its table, figure and sentence; large: lists must not load it.
    `failed`: why it was not made.
    """

    __tablename__ = "reproduced_items"

    id: str = Field(default_factory=lambda: new_id("rpi"), primary_key=True, max_length=40)
    reproduction_id: str = Field(foreign_key="reproductions.id", index=True, max_length=40)
    position: int = 0
    item: str = Field(max_length=100)
    state: str = Field(default="queued", max_length=40)
    runs: int | None = None
    result: Any = Field(default=None, nullable=True, sa_type=CompressedJson)
    failed: str | None = None
    heartbeat_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    started_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    finished_at: datetime | None = Field(default=None, sa_type=UtcDateTime)


class PaperRun(SQLModel, table=True):
    """One simulation or other work, shared by all items that need it.

    `key`: hash of its content, so that it is computed once. `state`: as an operation's.
    `heartbeat_at`: the worker's last sign of life. `result`: large.
    """

    __tablename__ = "paper_runs"

    key: str = Field(primary_key=True, max_length=64)
    state: str = Field(default="queued", index=True, max_length=40)
    result: Any = Field(default=None, nullable=True, sa_type=CompressedJson)
    failed: str | None = None
    heartbeat_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    started_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    finished_at: datetime | None = Field(default=None, sa_type=UtcDateTime)


class ReproducedRun(SQLModel, table=True):
    """A run that an item of a reproduction needs."""

    __tablename__ = "reproduced_runs"

    item_id: str = Field(foreign_key="reproduced_items.id", primary_key=True, max_length=40)
    run_key: str = Field(foreign_key="paper_runs.key", primary_key=True, index=True, max_length=64)
