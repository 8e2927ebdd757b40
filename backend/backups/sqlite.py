"""Copies a SQLite database by its online backup: one moment, while others read and write."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy as sa

from backend.backups.files import BackupError
from backend.damage import DamageNote, is_damage, sqlite_faults
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
    """Write the database to the file `content`. Raises BackupError for a damaged one."""
    file = file_of(database)
    _refuse_damaged(file, sqlite_faults(file, is_quick=True))
    try:
        with closing(_open(file)) as source, closing(sqlite3.connect(content)) as target:
            source.backup(target, pages=_PAGES, sleep=0.01)
            target.execute("PRAGMA journal_mode=DELETE")  # one file, without a journal beside it
        faults = sqlite_faults(content)
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        faults = [str(error)]
    _refuse_damaged(file, faults)


def _refuse_damaged(file: Path, faults: list[str]) -> None:
    if faults:
        raise BackupError(
            f"{file} is damaged ({faults[0]}), and no backup of it was written. `maat db check` "
            "lists the faults. Stop Maat and restore the last good backup: "
            "maat db restore FILE --force."
        )


def load(database: Database, content: Path, *, is_damaged: bool = False) -> Path | None:
    """Write `content` over the database, in one transaction: all of it or nothing.

    A damaged database cannot be written to: it is moved aside. Returns where it is then.
    """
    file = file_of(database)
    file.parent.mkdir(parents=True, exist_ok=True)
    aside = _moved_aside(file) if is_damaged else None
    is_new = not file.exists()
    try:
        with closing(sqlite3.connect(content)) as source, closing(_open(file)) as target:
            source.backup(target, pages=-1)
            target.execute("PRAGMA journal_mode=WAL")
    except sqlite3.DatabaseError as error:
        if is_new:
            for made in _files_of(file):
                made.unlink(missing_ok=True)
        if aside is not None:
            _rename(aside, file)
        raise BackupError(
            f"{file} cannot be written ({error}). Stop all processes of Maat first, and see "
            "whether its disk has room."
        ) from None
    DamageNote(file).clear()
    return aside


def _moved_aside(file: Path) -> Path:
    aside = file.with_name(f"{file.name}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
    _rename(file, aside)
    return aside


def _rename(file: Path, to: Path) -> None:
    for source, target in zip(_files_of(file), _files_of(to), strict=True):
        if source.exists():
            source.replace(target)


def _files_of(file: Path) -> list[Path]:
    """Return the database's file, its log, and the index of that."""
    return [file.with_name(f"{file.name}{suffix}") for suffix in ("", "-wal", "-shm")]


def _open(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(file, timeout=_BUSY_SECONDS)


def file_of(database: Database) -> Path:
    return Path(str(database.engine.url.database))
