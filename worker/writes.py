"""Writes prepared before their transaction begins.

SQLite allows one writer at a time, and others must not wait while JSON is encoded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session


@dataclass(frozen=True)
class Write:
    """A statement, executed for each of these rows of parameters.

    It is executed once if it has no parameters (`rows` is None).
    """

    statement: sa.Executable
    rows: Sequence[Mapping[str, Any]] | None = None


def carry_out(session: Session, writes: Iterable[Write]) -> None:
    connection = session.connection()
    for write in writes:
        if write.rows is None:
            connection.execute(write.statement)
        elif write.rows:
            connection.execute(write.statement, write.rows)
