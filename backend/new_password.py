"""Gives a person a random password from the command line and prints it once.

For who operates the database's machine, when nobody can sign in any more.

    python -m backend.new_password --user local --administrator
"""

from __future__ import annotations

import argparse

from sqlalchemy.exc import DatabaseError
from sqlmodel import Session, select

from backend.accounts.changes import one_at_a_time, shown_tenant, shown_user
from backend.accounts.models import Tenant, User
from backend.accounts.permissions import Role
from backend.accounts.principals import LOCAL_USER
from backend.accounts.random_password import give_random_password
from backend.audit.changes import Change, program, record
from backend.database import Database
from backend.problems import NotFound
from backend.settings import get_settings
from maat.vocabulary import UserKind


def new_password(database: Database, *, user_name: str, administrator: bool = False) -> str:
    """Return the person's new password. Raises NotFound if there is no such person.

    `administrator`: also make them an active cluster admin of an open tenant.
    """
    with database.session_scope() as session:
        one_at_a_time(session)
        user = session.exec(
            select(User).where(User.name == user_name, User.kind == UserKind.PERSON.value)
        ).first()
        if user is None:
            raise NotFound(f"there is no person {user_name!r}")
        if administrator:
            _make_administrator(session, user)
        return give_random_password(session, user, actor="the operator")


def _make_administrator(session: Session, user: User) -> None:
    tenant, operator = session.get_one(Tenant, user.tenant_id), program("the operator")
    before, closed = shown_user(user), shown_tenant(tenant)
    user.role, user.active = Role.CLUSTER_ADMIN.value, True
    record(session, Change(operator, "change user", user.id, before, shown_user(user), tenant.id))
    if tenant.closed_at is not None:
        tenant.closed_at, tenant.version = None, tenant.version + 1
        opened = Change(
            operator, "change tenant", tenant.id, closed, shown_tenant(tenant), tenant.id
        )
        record(session, opened)
    session.add_all([user, tenant])


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Give a person a random password and print it once. Their sessions end."
    )
    parser.add_argument("--user", default=LOCAL_USER, help="the person (default: %(default)s)")
    parser.add_argument(
        "--administrator",
        action="store_true",
        help="also make the person an active cluster_admin, and open their tenant if it is closed",
    )
    given = parser.parse_args()
    try:
        print(
            new_password(
                Database.of(get_settings()),
                user_name=given.user,
                administrator=given.administrator,
            )
        )
    except NotFound as problem:
        parser.exit(2, f"maat: {problem.detail}\n")
    except DatabaseError as error:
        parser.exit(
            1,
            f"maat: the database cannot be used ({error.orig}): has Maat been started with it?\n",
        )


if __name__ == "__main__":
    main()
