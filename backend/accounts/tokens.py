"""API tokens: made once, shown once, stored as a digest.

There is no page for them yet: `maat token create` makes one.
"""

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
    secret = TOKEN_PREFIX + secrets.token_urlsafe(32)
    listed = None if scopes is None else sorted(scope.value for scope in scopes)
    shown = secret[:_SHOWN_CHARACTERS]
    session.add(
        ApiToken(
            user_id=user.id,
            name=name,
            prefix=shown,
            token_hash=digest(secret),
            scopes=listed,
            expires_at=expires_at,
        )
    )
    session.flush()
    return secret


def digest(secret: str) -> str:
    """Hash a secret.

    It has 256 random bits: an unsalted digest suffices and can be looked up.
    """
    return hashlib.sha256(secret.encode()).hexdigest()
