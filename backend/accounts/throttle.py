"""Counts tries to sign in, so that nobody guesses passwords.

Counted are tries from an address, from an address to an account, and to an account from anywhere.
The last may be many: one who guesses from one address does not lock the account's owner out.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlmodel import Session, col, delete

from backend.accounts.models import SignInTries
from backend.accounts.name_rules import name_key
from backend.audit.changes import VISITOR, Change, record
from backend.clocktime import utc_now
from backend.database import Database
from backend.problems import Problem
from backend.secret_key import secret_key
from backend.settings import Settings

_OF_ADDRESS, _OF_ACCOUNT = 5, 10  # times as many as from one address to one account


class TooManyTries(Problem):
    """Too many tries to sign in."""

    remedy = "Wait as long as Retry-After says."
    slug, title, status = "too-many-tries", "Too many tries to sign in", 429
    retryable = True


@dataclass(frozen=True)
class _Counted:
    key: str
    most: int


def count_try(database: Database, settings: Settings, *, account: str, address: str) -> None:
    """Count a try before the password is looked at, in a transaction of its own.

    Tries at the same moment are counted too. Raises TooManyTries.
    """
    now = utc_now()
    with database.session_scope() as session:
        for counted in _counted(settings, account, address):
            tries, since = _counted_up(session, counted.key, now, settings)
            if tries == counted.most + 1:  # the later ones of this window are not written down
                after = {"address": address, "tries": tries}
                record(session, Change(VISITOR, "sign-ins held back", "", {}, after))
            if tries > counted.most:
                end = since + timedelta(seconds=settings.sign_in_window_seconds)
                wait = max(1, round((end - now).total_seconds()))
                break
        else:
            return
    raise TooManyTries(
        f"There were too many tries to sign in. Try again in {wait} s.",
        headers={"Retry-After": str(wait)},
    )


def forget_tries(session: Session, settings: Settings, *, account: str, address: str) -> None:
    """Forget the tries to an account whose owner has signed in. Those of the address stay."""
    _, pair, owner = _counted(settings, account, address)
    session.exec(delete(SignInTries).where(col(SignInTries.key).in_([pair.key, owner.key])))


def forget_old_tries(session: Session, settings: Settings) -> None:
    before = utc_now() - timedelta(seconds=settings.sign_in_window_seconds)
    session.exec(delete(SignInTries).where(col(SignInTries.since) < before))


def _counted(settings: Settings, account: str, address: str) -> list[_Counted]:
    fingerprint = secret_key(settings).fingerprint
    network, name, most = _network(address), name_key(account), settings.sign_in_tries
    return [
        _Counted(fingerprint(f"address {network}"), most * _OF_ADDRESS),
        _Counted(fingerprint(f"pair {network} {name}"), most),
        _Counted(fingerprint(f"account {name}"), most * _OF_ACCOUNT),
    ]


def _network(address: str) -> str:
    """Return the addresses of one sender: an IPv4 address, or an IPv6 network of /64."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if found.version == 4:
        return address
    return str(ipaddress.ip_network(f"{found}/64", strict=False))


def _counted_up(
    session: Session, key: str, now: datetime, settings: Settings
) -> tuple[int, datetime]:
    """Count a try, from one if the last tries are long ago. Return how many, and since when."""
    insert = sqlite.insert if session.get_bind().dialect.name == "sqlite" else postgresql.insert
    over = col(SignInTries.since) <= now - timedelta(seconds=settings.sign_in_window_seconds)
    statement = (
        insert(SignInTries)
        .values(key=key, tries=1, since=now)
        .on_conflict_do_update(
            index_elements=["key"],
            set_={
                "tries": sa.case((over, 1), else_=col(SignInTries.tries) + 1),
                "since": sa.case((over, now), else_=col(SignInTries.since)),
            },
        )
        .returning(col(SignInTries.tries), col(SignInTries.since))
    )
    tries, since = session.execute(statement).one()
    return tries, since
