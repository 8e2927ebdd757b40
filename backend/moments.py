"""The moment that a transaction uses as now.

On PostgreSQL it comes from the database machine's wall clock, the one all workers share; SQLite is
on this machine.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from sqlmodel import Session

from backend.clocktime import Moment, this_moment, utc_now
from backend.columns import UtcDateTime


class DatabaseNow(FunctionElement[Any]):
    """Now by the database's clock, within a statement; NULL on SQLite, which has this machine's.

    `this_moment` makes a Moment of either.
    """

    type = UtcDateTime()
    inherit_cache = True


@compiles(DatabaseNow)
def _by_its_clock(_element: DatabaseNow, _compiler: Any, **_given: Any) -> str:
    return "clock_timestamp()"


@compiles(DatabaseNow, "sqlite")
def _by_this_machines(_element: DatabaseNow, _compiler: Any, **_given: Any) -> str:
    return "NULL"


_NOW = sa.select(DatabaseNow())


def moment_of(session: Session) -> Moment:
    if session.get_bind().dialect.name == "sqlite":
        return this_moment()
    return this_moment(session.connection().execute(_NOW).scalar_one())


def from_now(seconds: float, *, is_sqlite: bool) -> sa.ColumnElement[object]:
    """Return the moment `seconds` from now by that clock, for use within a statement."""
    ahead = timedelta(seconds=seconds)
    if is_sqlite:
        return sa.literal(utc_now() + ahead, UtcDateTime())
    return sa.func.clock_timestamp() + sa.literal(ahead, sa.Interval())
