"""The first start: the schema, the local admin and, if set, a demo cluster.

Running it again changes nothing.

    python -m backend.bootstrap_data [--print-sign-in]
"""

from __future__ import annotations

import argparse
import sys

from sqlalchemy import make_url, or_
from sqlmodel import Session, col, select

from backend.accounts.identity import LOCAL_USER
from backend.accounts.models import ApiToken, Tenant, User
from backend.accounts.permissions import Role
from backend.accounts.random_password import give_random_password
from backend.accounts.signing_in import SIGN_IN
from backend.accounts.token_service import record_token
from backend.accounts.tokens import store_token
from backend.audit.changes import program
from backend.audit.models import AuditRecord
from backend.clusters.models import Cluster
from backend.clusters.service import create_cluster
from backend.damage import sqlite_faults, sqlite_file
from backend.database import Database
from backend.demo.beginning import begin_with_history
from backend.demo.cluster import DEMO_CLUSTER
from backend.demo.history import History
from backend.health.integrity import REMEDY
from backend.migrations import upgrade
from backend.settings import Settings, get_settings

DEFAULT_TENANT = "default"
NOBODY_CAME = (
    "Nobody has signed in yet. If the password of the first start is lost, another one:\n\n"
    f"    python -m backend.new_password --user {LOCAL_USER} --administrator"
)


def ensure_defaults(database: Database, settings: Settings) -> None:
    """Migrate, then add what is missing. Two processes may run it at once."""
    upgrade(database)
    add_defaults(database, settings)


def add_defaults(database: Database, settings: Settings) -> None:
    """Add what is missing to a database of the newest schema."""
    with database.session_scope() as session:
        database.lock_alone(session)
        _ensure_admin(session)
        if settings.demo and session.exec(select(Cluster)).first() is None:
            demo = create_cluster(session, DEMO_CLUSTER)
            if settings.demo_jobs:
                begin_with_history(session, demo, History.shipped())


def _ensure_admin(session: Session) -> None:
    if session.exec(select(User).where(User.name == LOCAL_USER)).first() is not None:
        return  # the tenant may have another name by now
    tenant = session.exec(select(Tenant).where(Tenant.name == DEFAULT_TENANT)).first() or Tenant(
        name=DEFAULT_TENANT
    )
    session.add(tenant)
    session.flush()
    session.add(User(name=LOCAL_USER, tenant_id=tenant.id, role=Role.CLUSTER_ADMIN.value))
    session.flush()


def first_token(database: Database) -> str | None:
    """Return the administrator's first token, or None if any token exists.

    Without it, no other token could be made.
    """
    with database.session_scope() as session:
        database.lock_alone(session)
        if session.exec(select(ApiToken)).first() is not None:
            return None
        admin = session.exec(select(User).where(User.name == LOCAL_USER)).one()
        row, secret = store_token(session, admin, name="first")
        record_token(session, program("the first start"), row, admin)
    return secret


def first_password(database: Database) -> str | None:
    """Give the administrator a random password and return it, or None.

    None if anybody can sign in already: without it nobody could sign in from a browser.
    """
    with database.session_scope() as session:
        database.lock_alone(session)
        ways = or_(col(User.password_hash).is_not(None), col(User.subject).is_not(None))
        if session.exec(select(User.id).where(ways)).first() is not None:
            return None
        admin = session.exec(select(User).where(User.name == LOCAL_USER)).one()
        return give_random_password(session, admin, actor="the first start")


def nobody_came(database: Database) -> bool:
    """Return whether nobody has signed in yet, nor used a token."""
    with database.session_scope(writes=False) as session:
        sign_ins = session.exec(select(AuditRecord.id).where(AuditRecord.action == SIGN_IN))
        used = session.exec(select(ApiToken.id).where(col(ApiToken.last_used_at).is_not(None)))
        return sign_ins.first() is None and used.first() is None


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Bring the database to the newest schema and add what the first start needs."
    )
    parser.add_argument(
        "--print-sign-in",
        "--print-first-token",
        action="store_true",
        help="print once how the administrator signs in, and a first token: each if there is none",
    )
    given = parser.parse_args()
    settings = get_settings()
    _refuse_damaged(settings)
    database = Database.of(settings)
    ensure_defaults(database, settings)
    if given.print_sign_in and settings.implicit_admin:
        print(
            "Who runs programs here as this user is the administrator, without signing in; all "
            "others need an account or a token. MAAT_IMPLICIT_ADMIN=false ends that.",
            flush=True,
        )
    elif given.print_sign_in:
        password, token = first_password(database), first_token(database)
        _show_password(password, settings)
        _show_token(token)
        if password is None and nobody_came(database):
            print(NOBODY_CAME, flush=True)
    database.dispose()


def _refuse_damaged(settings: Settings) -> None:
    """End before anything is written to a database that is damaged."""
    file = sqlite_file(make_url(settings.sqlalchemy_url))
    faults = [] if file is None else sqlite_faults(file, is_quick=True)
    if faults:
        sys.exit(f"The database {file} is damaged ({faults[0]}). {REMEDY}")


def _show_password(chosen: str | None, settings: Settings) -> None:
    if chosen is not None:
        print(
            f"Sign in at {settings.public_url.rstrip('/')}/sign-in as the administrator. "
            "The password is shown only once:\n\n"
            f"    name      {LOCAL_USER}\n    password  {chosen}\n\n"
            "Change it at /account.",
            flush=True,
        )


def _show_token(secret: str | None) -> None:
    if secret is not None:
        print(
            f"The administrator's first token, shown only once:\n\n    {secret}\n\n"
            "Make others at /account, or with `maat tokens create`.",
            flush=True,
        )


if __name__ == "__main__":
    main()
