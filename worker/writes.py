"""What a transaction is to write, made ready before it begins: SQLite lets one write at a time, and nobody shall wait for JSON to be made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session


@dataclass(frozen=True)
class Write:
    """A statement, carried out for each of these rows of parameters; once where it takes none (`rows` is None)."""

    statement: sa.Executable
    rows: Sequence[Mapping[str, Any]] | None = None


def carry_out(session: Session, writes: Iterable[Write]) -> None:
    connection = session.connection()
    for write in writes:
        if write.rows is None:
            connection.execute(write.statement)
        elif write.rows:
            connection.execute(write.statement, write.rows)
