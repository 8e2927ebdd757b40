"""Sessions of browsers: opaque random secrets in cookies, digests in the database.

A session ends after a time without use, after a longer time in any case, when its user signs out,
changes the password or is deactivated, and when the tenant is closed.
"""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta

from sqlalchemy import delete
from sqlmodel import Session, col, select

from backend.accounts.models import BrowserSession, User
from backend.accounts.principals import Credential, Principal, principal_where, touch
from backend.accounts.tokens import digest
from backend.clocktime import utc_now
from backend.database import Database
from backend.problems import Unauthenticated
from backend.settings import Settings

_SHOWN_OF_BROWSER = 200


def begin_session(
    session: Session, user: User, settings: Settings, *, how: str, browser: str
) -> tuple[BrowserSession, str]:
    """Make a session with a new secret, whatever the browser held before; return both."""
    secret, now = secrets.token_urlsafe(32), utc_now()
    row = BrowserSession(
        user_id=user.id,
        secret_hash=digest(secret),
        how=how,
        browser="".join(c for c in browser if c.isprintable())[:_SHOWN_OF_BROWSER],
        created_at=now,
        last_seen_at=now,
        expires_at=now + timedelta(days=settings.session_days),
    )
    session.add(row)
    user.signed_in_at = now
    session.add(user)
    session.flush()
    return row, secret


def principal_by_session(
    session: Session, *, secret: str, database: Database, settings: Settings
) -> Principal:
    """Return the user who signed in. Raises Unauthenticated."""
    row = session.exec(
        select(BrowserSession).where(BrowserSession.secret_hash == digest(secret))
    ).first()
    if row is None or _is_over(row, utc_now(), settings):
        raise Unauthenticated("The session is over. Sign in again.")
    credential = Credential("session", row.id)
    principal = principal_where(session, col(User.id) == row.user_id, credential)
    touch(session, row, "last_seen_at", database)
    return principal


def _is_over(row: BrowserSession, now: datetime, settings: Settings) -> bool:
    idle = timedelta(hours=settings.session_idle_hours)
    return row.expires_at <= now or now - row.last_seen_at > idle


def end_session(session: Session, secret: str) -> None:
    """End the session of this secret, if there is one."""
    session.execute(delete(BrowserSession).where(col(BrowserSession.secret_hash) == digest(secret)))


def end_sessions(session: Session, user_id: str, *, but: str | None = None) -> int:
    """End all sessions of a user; return how many. `but`: the id of one that stays."""
    ended = session.execute(
        delete(BrowserSession).where(
            col(BrowserSession.user_id) == user_id, col(BrowserSession.id) != (but or "")
        )
    )
    return int(ended.rowcount)  # type: ignore[attr-defined]


def end_sessions_of_tenant(session: Session, tenant_id: str) -> None:
    own = select(User.id).where(User.tenant_id == tenant_id)
    session.execute(delete(BrowserSession).where(col(BrowserSession.user_id).in_(own)))


def forget_old_sessions(session: Session) -> None:
    """Delete what can let nobody in any more."""
    session.execute(delete(BrowserSession).where(col(BrowserSession.expires_at) <= utc_now()))
