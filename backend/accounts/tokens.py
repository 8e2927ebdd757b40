"""API tokens: made once, shown once, stored as a digest."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from datetime import datetime

from sqlmodel import Session

from backend.accounts.models import ApiToken, User
from backend.accounts.permissions import Permission

TOKEN_PREFIX = "maat_"  # noqa: S105  (the prefix of a secret, not a secret)
_SHOWN_CHARACTERS = 12


def create_token(
    session: Session,
    user: User,
    *,
    name: str,
    scopes: Iterable[Permission] | None = None,
    expires_at: datetime | None = None,
) -> str:
    """Make a token for this user; return the secret, which is not stored."""
    return store_token(session, user, name=name, scopes=scopes, expires_at=expires_at)[1]


def store_token(
    session: Session,
    user: User,
    *,
    name: str,
    scopes: Iterable[Permission] | None = None,
    expires_at: datetime | None = None,
    made_by: str | None = None,
    made_with: str | None = None,
) -> tuple[ApiToken, str]:
    """Do the same; return the row and the secret. `made_by`, `made_with`: see ApiToken."""
    secret = TOKEN_PREFIX + secrets.token_urlsafe(32)
    token = ApiToken(
        user_id=user.id,
        name=name,
        prefix=secret[:_SHOWN_CHARACTERS],
        token_hash=digest(secret),
        scopes=None if scopes is None else sorted(scope.value for scope in scopes),
        expires_at=expires_at,
        made_by=made_by,
        made_with=made_with,
    )
    session.add(token)
    session.flush()
    return token, secret


def digest(secret: str) -> str:
    """Hash a secret.

    It has 256 random bits: an unsalted digest suffices and can be looked up.
    """
    return hashlib.sha256(secret.encode()).hexdigest()
