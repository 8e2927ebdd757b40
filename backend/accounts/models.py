"""Tables of tenants, users and their tokens.

Of a token only the digest is stored.
"""

from __future__ import annotations

from datetime import datetime

from sqlmodel import Field, SQLModel

from backend.clocktime import utc_now
from backend.columns import Json, UtcDateTime
from backend.ids import new_id


class Tenant(SQLModel, table=True):
    __tablename__ = "tenants"

    id: str = Field(default_factory=lambda: new_id("ten"), primary_key=True, max_length=40)
    name: str = Field(unique=True, max_length=200)
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)


class User(SQLModel, table=True):
    __tablename__ = "users"

    id: str = Field(default_factory=lambda: new_id("usr"), primary_key=True, max_length=40)
    name: str = Field(unique=True, max_length=200)
    tenant_id: str = Field(foreign_key="tenants.id", index=True, max_length=40)
    role: str = Field(max_length=40)
    active: bool = True


class ApiToken(SQLModel, table=True):
    """An API token.

    `scopes`: the permissions it is restricted to; None for all of its user's.
    """

    __tablename__ = "api_tokens"

    id: str = Field(default_factory=lambda: new_id("tok"), primary_key=True, max_length=40)
    user_id: str = Field(foreign_key="users.id", index=True, max_length=40)
    name: str = Field(max_length=200)
    prefix: str = Field(max_length=40)
    token_hash: str = Field(unique=True, max_length=64)
    scopes: list[str] | None = Field(default=None, sa_type=Json)
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
    expires_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    revoked_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    last_used_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
