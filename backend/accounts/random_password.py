"""Gives a person a random password: at the first start, and when nobody can sign in any more."""

from __future__ import annotations

import secrets

from pydantic import SecretStr
from sqlmodel import Session

from backend.accounts.models import User
from backend.accounts.passwords import hashed
from backend.accounts.sessions import end_sessions
from backend.audit.changes import Change, program, record

_BYTES = 18


def give_random_password(session: Session, user: User, *, actor: str) -> str:
    """Return the new password, which is stored nowhere; the user's sessions end.

    `actor`: the program that gives it.
    """
    chosen = secrets.token_urlsafe(_BYTES)
    user.password_hash = hashed(SecretStr(chosen))
    user.version += 1
    session.add(user)
    session.flush()
    end_sessions(session, user.id)
    action = "set password of user"
    record(session, Change(program(actor), action, user.id, tenant_id=user.tenant_id))
    return chosen
