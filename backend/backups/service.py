"""Makes, checks and restores backups of the database of the settings."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import sqlalchemy as sa
from sqlmodel import Session, col, func, select

from backend.backups import postgres, sqlite
from backend.backups.files import BackupError, Manifest, kind_of, unpacked, write_backup
from backend.backups.invariants import broken
from backend.database import Database
from backend.health.models import WorkerHeartbeat
from backend.moments import moment_of
from backend.schema_version import head_revision, known_revisions, revision_of
from backend.secret_key import has_secret_key, secret_key
from backend.settings import Settings

_LIVES = timedelta(seconds=30)


def backup(database: Database, settings: Settings, file: Path, *, force: bool = False) -> Manifest:
    """Write the database to a file, as it is at one moment; others go on.

    Raises BackupError: there is no folder for the file, or, unless `force`, a file already.
    """
    if file.exists() and not force:
        raise BackupError(f"{file} exists. Name another file, or give --force to replace it.")
    revision = _revision_of(database)
    if revision is None:
        raise BackupError("The database is empty: there is nothing to back up.")
    if not file.parent.is_dir():
        raise BackupError(f"There is no folder {file.parent}. Make it, or name another file.")
    with tempfile.TemporaryDirectory(dir=file.parent, prefix="maat-backup-") as folder:
        content = Path(folder, "database")
        dump = sqlite.dump if database.is_sqlite else postgres.dump
        dump(database, content)
        kind = kind_of(database.is_sqlite)
        return write_backup(
            file,
            content,
            kind=kind,
            revision=revision,
            key=_key(settings) if has_secret_key(settings) else "",
        )


def restore(database: Database, settings: Settings, file: Path, *, force: bool) -> list[str]:
    """Write a backup into the database, whole or not at all. Returns what to know of it.

    Raises BackupError: for a damaged file, one of another kind of database or of a newer schema,
    while a worker lives, and for a database that has tables unless `force`.
    """
    with unpacked(file, settings.data_path if settings.data_path.is_dir() else None) as found:
        manifest, content = found
        if manifest.kind != kind_of(database.is_sqlite):
            raise BackupError(
                f"{file} is of {manifest.kind}, and MAAT_DATABASE_URL names a database of another "
                "kind. Restore it into one of the same kind."
            )
        notes = [*_of_schema(manifest), *_of_key(manifest, settings)]
        has_tables = bool(sa.inspect(database.engine).get_table_names())
        if has_tables and not force:
            raise BackupError(
                "The database is not empty. Name an empty one, or give --force to replace all "
                "that is in it."
            )
        if has_tables:
            _refuse_while_workers_live(database)
        if database.is_sqlite:
            database.dispose()
            sqlite.load(database, content)
        else:
            postgres.load(database, content, empty_first=has_tables)
    return notes


def check_database(database: Database) -> list[str]:
    """Return what is wrong with the database; empty if nothing."""
    damaged = _of_file(database)
    if damaged:
        return damaged
    head, present = head_revision(), _revision_of(database)
    if present is None:
        return ["The database is empty."]
    if present != head:
        return [f"The schema is {present}, and this version has {head}: run make migrate."]
    with database.session_scope(writes=False) as session:
        _read_everything(session)
        return list(broken(session))


def check_file(file: Path) -> tuple[Manifest, list[str]]:
    """Return the manifest of a backup, and what is wrong with its content."""
    with unpacked(file) as (manifest, content):
        wrong = sqlite.is_sound(content) if manifest.kind == "sqlite" else []
        return manifest, wrong


def _revision_of(database: Database) -> str | None:
    with database.engine.connect() as connection:
        return revision_of(connection)


def _of_file(database: Database) -> list[str]:
    if not database.is_sqlite:
        return []
    return sqlite.is_sound(sqlite.file_of(database))


def _read_everything(session: Session) -> None:
    """Read every row: a damaged page fails here, not in a round."""
    for table in sa.inspect(session.connection()).get_table_names():
        session.execute(sa.text(f'SELECT count(*) FROM "{table}"'))  # noqa: S608  (its own names)


def _of_schema(manifest: Manifest) -> Sequence[str]:
    if manifest.revision not in known_revisions():
        raise BackupError(
            f"The backup has the schema {manifest.revision} of Maat {manifest.version}, which this "
            "version does not know. Use that version, or a newer one."
        )
    if manifest.revision == head_revision():
        return []
    return [f"Its schema is {manifest.revision}: `make migrate`, or the next start, renews it."]


def _of_key(manifest: Manifest, settings: Settings) -> Sequence[str]:
    if not manifest.key:
        return [
            "The backup was made where no secret key was: it cannot be told whether the one here "
            "reads its secrets of commands and webhooks."
        ]
    if not has_secret_key(settings):
        return [
            "There is no secret key here yet. Put secret.key of that data folder, or "
            "MAAT_SECRET_KEY, here before the first start: with a new one secrets of commands and "
            "webhooks cannot be read."
        ]
    if manifest.key == _key(settings):
        return []
    return [
        "The secret key here is not the one of the backup: secrets of commands and webhooks cannot "
        "be read. Put secret.key of that data folder, or MAAT_SECRET_KEY, back."
    ]


def _refuse_while_workers_live(database: Database) -> None:
    if not sa.inspect(database.engine).has_table(WorkerHeartbeat.__tablename__):
        return
    with database.session_scope(writes=False) as session:
        now = moment_of(session).wall
        lives = col(WorkerHeartbeat.at) > now - _LIVES
        count = session.exec(select(func.count()).select_from(WorkerHeartbeat).where(lives)).one()
    if count:
        raise BackupError(
            f"{count} workers have shown life within {_LIVES.seconds} s. Stop all processes of "
            "Maat, wait that long, and try again."
        )


def _key(settings: Settings) -> str:
    return secret_key(settings).fingerprint("backup")
