"""Makes an API token from the command line and prints the secret once.

No page can make one yet. `maat token create` runs it.

    python -m backend.new_token --user local --name laptop --days 90
"""

from __future__ import annotations

import argparse
from datetime import timedelta

from sqlalchemy.exc import DatabaseError
from sqlmodel import select

from backend.accounts.identity import LOCAL_USER
from backend.accounts.models import User
from backend.accounts.token_service import record_token
from backend.accounts.tokens import store_token
from backend.audit.changes import program
from backend.clocktime import utc_now
from backend.database import Database
from backend.problems import NotFound
from backend.settings import get_settings


def new_token(database: Database, *, user_name: str, name: str, days: float | None) -> str:
    """Return the secret of a new token. Raises NotFound if there is no such user."""
    with database.session_scope() as session:
        user = session.exec(select(User).where(User.name == user_name)).first()
        if user is None:
            raise NotFound(
                f"there is no user {user_name!r}: `local` is the administrator of the first start"
            )
        row, secret = store_token(
            session,
            user,
            name=name,
            expires_at=None if days is None else utc_now() + timedelta(days=days),
        )
        record_token(session, program("the operator"), row, user)
    return secret


def main() -> None:
    parser = argparse.ArgumentParser(description="Make an API token and print it once.")
    parser.add_argument(
        "--user", default=LOCAL_USER, help="the token's user (default: %(default)s)"
    )
    parser.add_argument("--name", default="token", help="what the token is for")
    parser.add_argument(
        "--days", type=float, default=None, help="days until it expires (default: never)"
    )
    given = parser.parse_args()
    try:
        print(
            new_token(
                Database.of(get_settings()), user_name=given.user, name=given.name, days=given.days
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
