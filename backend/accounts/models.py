"""Tables of tenants, users, their tokens and sessions, and of failed sign-ins.

Of a token, a session or a password only a digest is stored.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Index
from sqlmodel import Field, SQLModel

from backend.clocktime import utc_now
from backend.columns import Json, UtcDateTime
from backend.ids import new_id
from maat.vocabulary import UserKind


class Tenant(SQLModel, table=True):
    """A team. `closed_at`: since when nobody of it is let in; its rows stay.

    `weight`: its share of what several tenants want, in all clusters.
    """

    __tablename__ = "tenants"

    id: str = Field(default_factory=lambda: new_id("ten"), primary_key=True, max_length=40)
    name: str = Field(unique=True, max_length=200)
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
    closed_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    weight: float = 1.0
    version: int = 1


class User(SQLModel, table=True):
    """A person or a service account.

    `issuer`, `subject`: by whom and as whom an OpenID Connect provider knows the person.
    """

    __tablename__ = "users"
    __table_args__ = (Index("ix_users_issuer_subject", "issuer", "subject", unique=True),)

    id: str = Field(default_factory=lambda: new_id("usr"), primary_key=True, max_length=40)
    name: str = Field(unique=True, max_length=200)
    tenant_id: str = Field(foreign_key="tenants.id", index=True, max_length=40)
    role: str = Field(max_length=40)
    active: bool = True
    kind: str = Field(default=UserKind.PERSON.value, max_length=40)
    password_hash: str | None = Field(default=None, max_length=300)
    issuer: str | None = Field(default=None, max_length=300)
    subject: str | None = Field(default=None, max_length=300)
    created_at: datetime | None = Field(default_factory=utc_now, sa_type=UtcDateTime)
    signed_in_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    version: int = 1


class ApiToken(SQLModel, table=True):
    """An API token.

    `scopes`: the permissions it is restricted to; None for all of its user's. `made_by`: the user
    who made it; `made_with`: the token with which, if any: it is revoked with that one.
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
    made_by: str | None = Field(default=None, max_length=40)
    made_with: str | None = Field(default=None, index=True, max_length=40)


class BrowserSession(SQLModel, table=True):
    """A sign-in of a browser. The row is deleted when the session ends.

    `how`: `password` or `oidc`; `browser`: what the browser calls itself, shortened.
    """

    __tablename__ = "browser_sessions"

    id: str = Field(default_factory=lambda: new_id("ses"), primary_key=True, max_length=40)
    user_id: str = Field(foreign_key="users.id", index=True, max_length=40)
    secret_hash: str = Field(unique=True, max_length=64)
    how: str = Field(max_length=40)
    browser: str = Field(max_length=200)
    created_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
    last_seen_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
    expires_at: datetime = Field(sa_type=UtcDateTime, index=True)


class SignInTries(SQLModel, table=True):
    """How often somebody tried to sign in since `since`: to an account, or from an address.

    `key`: a keyed digest: what people type as their name may be their password.
    """

    __tablename__ = "sign_in_tries"

    key: str = Field(primary_key=True, max_length=64)
    tries: int
    since: datetime = Field(sa_type=UtcDateTime, index=True)
