"""The rule that an administrator is always left: a person of an open tenant who can sign in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa
from sqlmodel import Session, col, select

from backend.accounts.models import Tenant, User
from backend.accounts.permissions import Role
from backend.accounts.principals import LOCAL_USER
from backend.problems import Problem
from backend.settings import Settings
from maat.vocabulary import UserKind


class LastAdministrator(Problem):
    """Nobody could manage Maat any more: nobody else is a cluster admin who can sign in."""

    remedy = (
        "Give another active person the role cluster_admin and a way to sign in, a password or the "
        "provider that is set; then repeat this."
    )
    slug, title, status = "last-administrator", "An administrator must be left", 409


@contextmanager
def an_administrator_stays(session: Session, settings: Settings, what: str) -> Iterator[None]:
    """Check that an administrator is left after a change; the transaction is undone otherwise.

    The caller holds `one_at_a_time`, or two changes could each leave the other's administrator.
    `what`: begins the sentence of the refusal. Raises LastAdministrator. Where nobody could sign
    in before, tokens administer Maat: then any active administrator will do.
    """
    can_sign_in = _can_sign_in(settings)
    had = _is_one_left(session, can_sign_in)
    yield
    session.flush()
    if not _is_one_left(session, can_sign_in if had else sa.true()):
        raise LastAdministrator(
            f"{what}, another active person must be a cluster admin first: nobody else who can "
            "sign in is."
        )


def _is_one_left(session: Session, which: sa.ColumnElement[bool]) -> bool:
    found = session.exec(
        select(User.id)
        .join(Tenant, col(Tenant.id) == col(User.tenant_id))
        .where(
            User.role == Role.CLUSTER_ADMIN.value,
            User.kind == UserKind.PERSON.value,
            col(User.active),
            col(Tenant.closed_at).is_(None),
            which,
        )
        .limit(1)
    )
    return found.first() is not None


def _can_sign_in(settings: Settings) -> sa.ColumnElement[bool]:
    """Select who has a way in: a password, the provider that is set, or being the local user."""
    ways: list[sa.ColumnElement[bool]] = [col(User.password_hash).is_not(None)]
    if settings.has_oidc:
        of_provider = col(User.issuer) == settings.oidc_issuer
        ways.append(sa.and_(of_provider, col(User.subject).is_not(None)))
    if settings.implicit_admin:
        ways.append(col(User.name) == LOCAL_USER)
    return sa.or_(*ways)
