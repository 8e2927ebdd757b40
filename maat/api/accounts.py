"""Tenants, users, tokens, sessions of browsers, and signing in."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr, WithJsonSchema
from typing_extensions import TypedDict

from maat.api.fields import NEVER_NULL, Body, Moment, Name, NameInAddresses, Timestamp
from maat.api.quotas import Weight
from maat.vocabulary import Role, UserKind

LEAST_PASSWORD, MOST_PASSWORD = 12, 200
"""Characters of a password."""
MOST_SCOPES = 50


def _long_enough(password: SecretStr) -> SecretStr:
    if not LEAST_PASSWORD <= len(password) <= MOST_PASSWORD:
        raise ValueError(
            f"A password has {LEAST_PASSWORD} to {MOST_PASSWORD} characters: "
            "a sentence is easier to remember than signs"
        )
    return password


NewPassword = Annotated[
    SecretStr,
    AfterValidator(_long_enough),
    WithJsonSchema(
        {
            "type": "string",
            "format": "password",
            "writeOnly": True,
            "minLength": LEAST_PASSWORD,
            "maxLength": MOST_PASSWORD,
        }
    ),
]
GivenPassword = Annotated[SecretStr, Field(min_length=1, max_length=MOST_PASSWORD)]


class TenantBody(Body):
    """A team that shares the clusters with others."""

    name: NameInAddresses


class TenantChanges(Body):
    """What may change of a tenant. `closed`: nobody of it is let in; what it has stays."""

    name: Annotated[NameInAddresses | None, NEVER_NULL] = None
    closed: Annotated[bool | None, NEVER_NULL] = None
    weight: Annotated[Weight | None, NEVER_NULL] = None


class TenantOut(TypedDict):
    """A tenant. `users`: how many it has, active or not. `weight`: 1 at first."""

    id: str
    name: str
    state: Literal["open", "closed"]
    users: int
    weight: float
    created_at: Timestamp
    version: int


class UserBody(Body):
    """A person, or a service account, which has tokens and no password."""

    name: NameInAddresses
    tenant: Name | None = Field(default=None, description="Default: your own.")
    role: Role = Field(default=Role.VIEWER, strict=False)
    kind: UserKind = Field(default=UserKind.PERSON, strict=False)
    password: NewPassword | None = Field(
        default=None, description="Of a person. Without one they cannot sign in by password."
    )


class UserChanges(Body):
    """What may change of a user. Who is not active is not let in, by no means."""

    role: Annotated[Role | None, NEVER_NULL] = Field(default=None, strict=False)
    active: Annotated[bool | None, NEVER_NULL] = None


class UserOut(TypedDict):
    """A user. `signs_in_by`: the ways there are; a service account has none."""

    id: str
    name: str
    tenant: str
    role: Role
    kind: UserKind
    active: bool
    signs_in_by: list[Literal["password", "oidc"]]
    signed_in_at: Timestamp | None
    created_at: Timestamp | None
    version: int


class PasswordBody(Body):
    """The new password of another user."""

    password: NewPassword


class OwnPasswordBody(Body):
    """One's own new password, with the present one."""

    old_password: GivenPassword
    new_password: NewPassword


class TokenBody(Body):
    """A token of one's own, or of a service account that one manages."""

    name: Name
    user: Name | None = Field(
        default=None, description="A service account, by name or id; default: yourself."
    )
    scopes: list[Name] | None = Field(
        default=None,
        max_length=MOST_SCOPES,
        description="Permissions to restrict it to; default: all that its user has.",
    )
    expires_at: Moment | None = Field(default=None, description="Default: never.")


class TokenOut(TypedDict):
    """A token without its secret, which was shown once. `prefix`: how the secret begins.

    `scopes`: null for all permissions of its user. `state`: suspended while its user, or who made
    it, may not use Maat.
    """

    id: str
    user: str
    tenant: str
    name: str
    prefix: str
    scopes: list[str] | None
    state: Literal["active", "suspended", "expired", "revoked"]
    created_at: Timestamp
    expires_at: Timestamp | None
    revoked_at: Timestamp | None
    last_used_at: Timestamp | None
    made_by: str | None


class TokenMadeOut(TokenOut):
    """A new token. `secret`: shown this once; null in a repeated answer."""

    secret: str | None


class SignInBody(Body):
    """A person who signs in from a browser."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    password: GivenPassword


class SignedInOut(TypedDict):
    """A new session; the browser gets its cookies.

    `csrf_token`: send it as X-CSRF-Token with everything that changes something.
    """

    user: str
    csrf_token: str
    expires_at: Timestamp


class SignInWaysOut(TypedDict):
    """How one can sign in here. `oidc`: what the button says; null without a provider.

    `problem`: why a browser cannot sign in at this address; null if it can. `local`: who is not
    signed in is the local administrator here.
    """

    oidc: str | None
    problem: str | None
    local: bool


class SessionOut(TypedDict):
    """A browser that is signed in. `current`: the one that asks."""

    id: str
    how: Literal["password", "oidc"]
    browser: str
    current: bool
    created_at: Timestamp
    last_seen_at: Timestamp
    expires_at: Timestamp


class EndedOut(TypedDict):
    """How many sessions have ended."""

    ended: int
