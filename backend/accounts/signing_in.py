"""Signs people in by name and password, each step in a transaction of its own.

A password takes long to check, and nobody else should wait for it on SQLite.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from pydantic import SecretStr
from sqlmodel import Session, col, select

from backend.accounts.models import BrowserSession, Tenant, User
from backend.accounts.name_rules import stored_name
from backend.accounts.passwords import hashed, is_outdated, is_right
from backend.accounts.sessions import begin_session, end_session
from backend.accounts.throttle import count_try, forget_tries
from backend.audit.changes import VISITOR, Change, as_user, record
from backend.database import Database
from backend.problems import Problem
from backend.settings import Settings
from maat.vocabulary import UserKind

SIGN_IN = "sign in"
"""The action of a sign-in in the audit log."""

log = logging.getLogger(__name__)


class SignInRefused(Problem):
    """The name or the password is wrong, or this user may not sign in by password."""

    remedy = "Check both, or ask who manages your tenant for another password."
    slug, title, status = "sign-in-refused", "You are not signed in", 401


@dataclass(frozen=True)
class Visit:
    """Whence somebody signs in. `held`: the secret of the session that the browser had."""

    address: str
    browser: str
    held: str | None = None


@dataclass(frozen=True)
class SignedIn:
    user: User
    row: BrowserSession
    secret: str


def sign_in(
    database: Database, settings: Settings, name: str, password: SecretStr, visit: Visit
) -> SignedIn:
    """Begin a session. Raises TooManyTries, and SignInRefused with one answer for every cause."""
    count_try(database, settings, account=name, address=visit.address)
    found = _signs_in_as(database, name)
    stored = None if found is None else found.password_hash
    if not is_right(password, stored) or found is None or stored is None:
        log.info("a sign-in was refused, from %s", visit.address)
        _write_refusal(database, found, visit)
        raise SignInRefused("The name or the password is wrong.")
    fresh = hashed(password) if is_outdated(stored) else stored
    with database.session_scope() as session:
        user = session.get(User, found.id)
        if user is None or not user.active or user.password_hash != stored:
            raise SignInRefused("The name or the password is wrong.")  # changed just now
        user.password_hash = fresh
        if visit.held is not None:
            end_session(session, visit.held)
        row, secret = begin_session(session, user, settings, how="password", browser=visit.browser)
        forget_tries(session, settings, account=name, address=visit.address)
        record_sign_in(session, user, row, visit)
    return SignedIn(user, row, secret)


def record_sign_in(session: Session, user: User, row: BrowserSession, visit: Visit) -> None:
    after = {"how": row.how, "address": visit.address, "browser": row.browser}
    record(session, Change(as_user(user), SIGN_IN, row.id, {}, after, user.tenant_id))


def _write_refusal(database: Database, user: User | None, visit: Visit) -> None:
    """Write down a wrong password, or a name that nobody has: not the name, which may be one."""
    target, tenant_id = ("", None) if user is None else (user.id, user.tenant_id)
    after = {"how": "password", "address": visit.address}
    with database.session_scope() as session:
        record(session, Change(VISITOR, "sign-in refused", target, {}, after, tenant_id))


def check_own_password(
    database: Database, settings: Settings, user_id: str, password: SecretStr, visit: Visit
) -> str:
    """Check the present password of who is signed in; return their name.

    Counted as a try to sign in. Raises TooManyTries, SignInRefused.
    """
    with database.session_scope(writes=False) as session:
        user = session.get_one(User, user_id)
    count_try(database, settings, account=user.name, address=visit.address)
    if not is_right(password, user.password_hash):
        with database.session_scope() as session:
            change = Change(
                as_user(user), "password refused", user.id, {}, {}, tenant_id=user.tenant_id
            )
            record(session, change)
        raise SignInRefused("The present password is wrong.")
    return user.name


def _signs_in_as(database: Database, name: str) -> User | None:
    """Return the user of this name if they may sign in by password at all."""
    with database.session_scope(writes=False) as session:
        return session.exec(
            select(User)
            .join(Tenant, col(Tenant.id) == col(User.tenant_id))
            .where(
                User.name == stored_name(session, User, name),
                col(User.active),
                User.kind == UserKind.PERSON.value,
                col(User.password_hash).is_not(None),
                col(Tenant.closed_at).is_(None),
            )
        ).first()
