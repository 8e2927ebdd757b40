"""Tables of measurements, of their files, and of their use by long work.

The files are separate so that lists stay light.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlmodel import Field, SQLModel

from backend.clocktime import utc_now
from backend.columns import CompressedJson, Json, UtcDateTime
from backend.ids import new_id

_STANDING = sa.text("deleted_at IS NULL")


class Measurement(SQLModel, table=True):
    """A measurement.

    `digest`: of the files. `files`: name, size and sha256 of each. `covers`: GPU type -> what was
    measured on it. A deleted measurement keeps its row and files while operations use it; its name
    is free again.
    """

    __tablename__ = "measurements"
    __table_args__ = (
        sa.Index(
            "uq_measurements_tenant_id_kind_name",
            "tenant_id",
            "kind",
            "name",
            unique=True,
            sqlite_where=_STANDING,
            postgresql_where=_STANDING,
        ),
    )

    id: str = Field(default_factory=lambda: new_id("mea"), primary_key=True, max_length=40)
    kind: str = Field(max_length=40)
    name: str = Field(max_length=200)
    owner_id: str = Field(foreign_key="users.id", max_length=40)
    tenant_id: str = Field(foreign_key="tenants.id", index=True, max_length=40)
    digest: str = Field(max_length=64)
    files: Any = Field(sa_type=Json)
    covers: dict[str, Any] = Field(sa_type=Json)
    source: str | None = Field(default=None, max_length=200)
    url: str | None = Field(default=None, max_length=500)
    licence: str | None = Field(default=None, max_length=200)
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
    deleted_at: datetime | None = Field(default=None, sa_type=UtcDateTime)


class MeasurementFiles(SQLModel, table=True):
    """`texts`: file name -> content."""

    __tablename__ = "measurement_files"

    measurement_id: str = Field(foreign_key="measurements.id", primary_key=True, max_length=40)
    texts: Any = Field(sa_type=CompressedJson)


class MeasurementUse(SQLModel, table=True):
    """Records the measurement that an operation was requested with.

    `gpu_type`: the one chosen from a table for several.
    """

    __tablename__ = "measurement_uses"

    operation_id: str = Field(foreign_key="operations.id", primary_key=True, max_length=40)
    kind: str = Field(primary_key=True, max_length=40)
    measurement_id: str = Field(foreign_key="measurements.id", index=True, max_length=40)
    gpu_type: str | None = Field(default=None, max_length=200)
