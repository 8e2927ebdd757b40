"""Damage of the database: by which errors it shows, and a note of it beside SQLite's file.

Any process may be the first to read a damaged page. The note tells the others, and those that
start later, until the database is restored or a check of all of it finds nothing.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import sqlalchemy as sa

_PRIMARY = 0xFF  # SQLite's extended codes hold the primary one in their lowest byte
_SQLITE_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_POSTGRES_DAMAGE = ("XX001", "XX002")  # data_corrupted, index_corrupted
_MOST_CHARACTERS = 400
_MOST_FAULTS = 20
_BUSY_SECONDS = 20.0


def is_damage(error: BaseException | None) -> bool:
    """Return whether a driver's error says that what is stored cannot be right."""
    if isinstance(error, sqlite3.Error):
        code = getattr(error, "sqlite_errorcode", None)
        return code is not None and code & _PRIMARY in _SQLITE_DAMAGE
    return getattr(error, "sqlstate", None) in _POSTGRES_DAMAGE


def sqlite_file(url: sa.URL) -> Path | None:
    """Return the file of a SQLite database; None for another kind, or one in memory."""
    is_file = url.get_backend_name() == "sqlite" and bool(url.database)
    return Path(str(url.database)) if is_file else None


def sqlite_faults(file: Path, *, is_quick: bool = False) -> list[str]:
    """Return what SQLite finds wrong with a database file; empty if nothing, or there is none.

    A quick check reads all of the file, and compares neither indices nor references with tables.
    Raises sqlite3.OperationalError if the file cannot be read.
    """
    if not file.exists():
        return []
    check = "quick_check" if is_quick else "integrity_check"
    with closing(sqlite3.connect(file, timeout=_BUSY_SECONDS)) as opened:
        try:
            rows = [str(row[0]) for row in opened.execute(f"PRAGMA {check}({_MOST_FAULTS})")]
            faults = [line for row in rows if row != "ok" for line in row.splitlines()]
            return faults if is_quick else [*faults, *_missing_references(opened)]
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            return [str(error)]


def _missing_references(opened: sqlite3.Connection) -> list[str]:
    rows = opened.execute("PRAGMA foreign_key_check").fetchmany(_MOST_FAULTS)
    return [f"{row[0]} row {row[1]} has no {row[2]}" for row in rows]


class DamageNote:
    """What is known of the damage of a SQLite database, for all processes that use it."""

    def __init__(self, database_file: Path) -> None:
        self._path = database_file.with_name(f"{database_file.name}.damaged")

    def write(self, words: str) -> None:
        """Keep the first words: later faults follow from it."""
        with suppress(OSError), self._path.open("x") as note:
            note.write(words[:_MOST_CHARACTERS])

    def read(self) -> str | None:
        """Return what is known; None if nothing is."""
        try:
            return self._path.read_text(errors="replace")
        except OSError:
            return None

    def clear(self) -> None:
        self._path.unlink(missing_ok=True)
