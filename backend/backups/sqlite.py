"""Copies a SQLite database by its online backup: one moment, while others read and write."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import sqlalchemy as sa

from backend.backups.files import BackupError
from backend.database import Database

_BUSY_SECONDS = 20.0
_PAGES = 4096  # at a time: writers get in between


def check_is_there(database_url: str) -> None:
    """Raise BackupError for a SQLite database that is not there: to open it would make it."""
    url = sa.make_url(database_url)
    if url.get_backend_name() == "sqlite" and not Path(str(url.database)).is_file():
        raise BackupError(
            f"There is no database {url.database}. Name the data folder of `maat up` by "
            "--data-dir, or the database by MAAT_DATABASE_URL."
        )


def dump(database: Database, content: Path) -> None:
    """Write the database to the file `content`."""
    with closing(_open(file_of(database))) as source, closing(sqlite3.connect(content)) as target:
        source.backup(target, pages=_PAGES, sleep=0.01)
        target.execute("PRAGMA journal_mode=DELETE")  # one file, without a journal beside it


def load(database: Database, content: Path) -> None:
    """Write `content` over the database, in one transaction: all of it or nothing."""
    file = file_of(database)
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        with closing(sqlite3.connect(content)) as source, closing(_open(file)) as target:
            source.backup(target, pages=-1)
            target.execute("PRAGMA journal_mode=WAL")
    except sqlite3.OperationalError as error:
        raise BackupError(
            f"{file} cannot be written ({error}). Stop all processes of Maat first."
        ) from None


def is_sound(content: Path) -> list[str]:
    """Return what SQLite finds wrong with a database file; empty if nothing."""
    with closing(sqlite3.connect(content)) as opened:
        try:
            found = [row[0] for row in opened.execute("PRAGMA integrity_check(20)")]
            keys = [
                f"{row[0]} row {row[1]} has no {row[2]}"
                for row in opened.execute("PRAGMA foreign_key_check").fetchmany(20)
            ]
        except sqlite3.DatabaseError as error:
            return [str(error)]
    return [*(line for line in found if line != "ok"), *keys]


def _open(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(file, timeout=_BUSY_SECONDS)


def file_of(database: Database) -> Path:
    return Path(str(database.engine.url.database))
