"""Tables of webhooks, of what they are still to be told, and of messages on their way."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy import Index, LargeBinary, UniqueConstraint, text
from sqlmodel import Field, SQLModel

from backend.clocktime import utc_now
from backend.columns import BigId, Json, UtcDateTime
from backend.ids import new_id


class Webhook(SQLModel, table=True):
    """Where messages of some events go.

    `tenant_id`: of whose jobs it hears; None: of all. `owner_id`: who changed it last; it hears
    with their rights. `old_secret` signs too until `old_secret_until`. `last_number`: of its newest
    message. `failures`: tries since one arrived; nothing is sent before `rests_until`.
    """

    __tablename__ = "webhooks"

    id: str = Field(default_factory=lambda: new_id("whk"), primary_key=True, max_length=40)
    tenant_id: str | None = Field(default=None, foreign_key="tenants.id", index=True, max_length=40)
    cluster_id: str | None = Field(default=None, foreign_key="clusters.id", max_length=40)
    owner_id: str = Field(foreign_key="users.id", max_length=40)
    name: str = Field(max_length=200)
    url: str = Field(max_length=2000)
    events: list[str] = Field(default_factory=list, sa_type=Json)
    secret: bytes = Field(sa_type=LargeBinary)
    old_secret: bytes | None = Field(default=None, sa_type=LargeBinary)
    old_secret_until: datetime | None = Field(default=None, sa_type=UtcDateTime)
    active: bool = True
    last_number: int = 0
    failures: int = 0
    rests_until: datetime | None = Field(default=None, sa_type=UtcDateTime)
    version: int = 1
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)


class WebhookNotice(SQLModel, table=True):
    """Something happened of which webhooks are to be told.

    Triggers add a row in the transaction of what happened (migration 0024), while there is an
    active webhook. `source`: the table; `source_id`: its row; `note`: the fault of a cluster or
    node, None once it is over.
    """

    __tablename__ = "webhook_notices"

    id: int | None = Field(default=None, primary_key=True, sa_type=BigId)
    source: str = Field(max_length=40)
    source_id: str = Field(max_length=40)
    note: str | None = Field(default=None, max_length=1000)
    at: datetime = Field(
        sa_type=UtcDateTime, sa_column_kwargs={"server_default": sa.text("CURRENT_TIMESTAMP")}
    )


class WebhookDelivery(SQLModel, table=True):
    """One message on its way. `body`: the same bytes in every try.

    `tries` that were made; the next is not before `next_try_at`, and none after `until`. `state`:
    as an operation's.
    """

    __tablename__ = "webhook_deliveries"
    __table_args__ = (
        UniqueConstraint("webhook_id", "number"),
        Index(
            "ix_webhook_deliveries_open",
            "webhook_id",
            "number",
            sqlite_where=text("finished_at IS NULL"),
            postgresql_where=text("finished_at IS NULL"),
        ),
        Index("ix_webhook_deliveries_finished_at", "finished_at"),
    )

    id: str = Field(default_factory=lambda: new_id("whd"), primary_key=True, max_length=40)
    webhook_id: str = Field(foreign_key="webhooks.id", max_length=40)
    number: int
    type: str = Field(max_length=40)
    body: str = Field(sa_type=sa.Text)
    state: str = Field(default="queued", max_length=40)
    tries: int = 0
    answered: int | None = None
    message: str = Field(default="", max_length=1000)
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
    next_try_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
    until: datetime = Field(sa_type=UtcDateTime)
    started_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    finished_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    heartbeat_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
