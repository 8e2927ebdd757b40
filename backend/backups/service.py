"""Makes, checks and restores backups of the database of the settings."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from sqlmodel import Session, col, func, select

from backend.backups import postgres, sqlite
from backend.backups.files import (
    BackupError,
    Manifest,
    kind_of,
    read_manifest,
    unpacked,
    write_backup,
)
from backend.backups.invariants import broken, failing_statements
from backend.damage import is_damage, sqlite_faults
from backend.database import Database
from backend.health.models import WorkerHeartbeat
from backend.moments import moment_of
from backend.schema_version import head_revision, known_revisions, revision_of
from backend.secret_key import has_secret_key, secret_key
from backend.settings import Settings

_LIVES = timedelta(seconds=30)
_UNSOUND_REMEDY = "Use an older one, or give --unverified to restore it all the same."


def backup(database: Database, settings: Settings, file: Path, *, force: bool = False) -> Manifest:
    """Write the database to a file, as it is at one moment; others go on.

    Raises BackupError: there is no folder for the file, or, unless `force`, a file already.
    """
    if file.exists() and not force:
        raise BackupError(f"{file} exists. Name another file, or give --force to replace it.")
    if not file.parent.is_dir():
        raise BackupError(f"There is no folder {file.parent}. Make it, or name another file.")
    with tempfile.TemporaryDirectory(dir=file.parent, prefix="maat-backup-") as folder:
        content = Path(folder, "database")
        dump = sqlite.dump if database.is_sqlite else postgres.dump
        dump(database, content)
        revision = _revision_of(database)
        if revision is None:
            raise BackupError("The database is empty: there is nothing to back up.")
        kind = kind_of(database.is_sqlite)
        return write_backup(
            file,
            content,
            kind=kind,
            revision=revision,
            key=_key(settings) if has_secret_key(settings) else "",
            sign=secret_key(settings).signature if has_secret_key(settings) else None,
        )


def restore(
    database: Database, settings: Settings, file: Path, *, force: bool, unverified: bool = False
) -> list[str]:
    """Write a backup into the database, whole or not at all. Returns what to know of it.

    Raises BackupError: for a damaged file, one of another kind of database or of a newer schema,
    while a worker lives, for a database that has tables unless `force`, and, unless `unverified`,
    for a file that the key here has not signed or in which something is not true.
    """
    manifest = read_manifest(file)
    doubt = _doubt_of(manifest, settings)
    if doubt is not None and not unverified:
        raise BackupError(
            f"{file} {doubt} To restore it all the same, without knowing who wrote it, give "
            "--unverified."
        )
    folder = settings.data_path if settings.data_path.is_dir() else None
    with unpacked(file, manifest, folder) as content:
        if manifest.kind != kind_of(database.is_sqlite):
            raise BackupError(
                f"{file} is of {manifest.kind}, and MAAT_DATABASE_URL names a database of another "
                "kind. Restore it into one of the same kind."
            )
        notes = [*_of_schema(manifest), *_of_key(manifest, settings)]
        if database.is_sqlite:
            untrue = _untrue_in(content, manifest, file)
            if untrue and not unverified:
                raise BackupError(
                    f"The backup is not sound: {'; '.join(untrue)}. {_UNSOUND_REMEDY}"
                )
            notes += untrue
        notes += _replaced(database, content, manifest, force=force, unverified=unverified)
    return notes


def _replaced(
    database: Database, content: Path, manifest: Manifest, *, force: bool, unverified: bool
) -> list[str]:
    """Write `content` over the database. Returns what to know of what was there."""
    is_damaged = bool(_of_file(database))
    has_tables = is_damaged or bool(sa.inspect(database.engine).get_table_names())
    if has_tables and not force:
        raise BackupError(
            "The database is damaged. Give --force to move it aside."
            if is_damaged
            else "The database is not empty. Name an empty one, or give --force to replace all "
            "that is in it."
        )
    notes = _refuse_while_workers_live(database) if has_tables else []
    if database.is_sqlite:
        database.dispose()
        aside = sqlite.load(database, content, is_damaged=is_damaged)
        return notes if aside is None else [*notes, f"The damaged database is kept as {aside}."]
    is_checked = manifest.revision == head_revision() and not unverified
    checks = failing_statements() if is_checked else []
    try:
        postgres.load(database, content, empty_first=has_tables, checks=checks)
    except postgres.CheckFailed as failed:
        raise BackupError(f"The backup is not sound: {failed}. {_UNSOUND_REMEDY}") from None
    return notes


def _untrue_in(content: Path, manifest: Manifest, file: Path) -> list[str]:
    """Return which rules an unpacked SQLite database breaks. Raises BackupError for a damaged one.

    The rules are of the newest schema: of an older one nothing is said.
    """
    faults = sqlite_faults(content)
    if faults:
        raise BackupError(f"{file} holds a damaged database ({faults[0]}). Use another.")
    opened = Database(f"sqlite:///{content}", connections=1)
    try:
        if _revision_of(opened) != manifest.revision:
            raise BackupError(f"{file} does not hold the schema that its manifest names.")
        if manifest.revision != head_revision():
            return []
        with opened.session_scope(writes=False) as session:
            return list(broken(session))
    finally:
        opened.dispose()


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


def check_file(file: Path, settings: Settings) -> tuple[Manifest, list[str]]:
    """Return the manifest of a backup, and what is wrong with it."""
    manifest = read_manifest(file)
    with unpacked(file, manifest) as content:
        doubt = _doubt_of(manifest, settings)
        faults = sqlite_faults(content) if manifest.kind == "sqlite" else []
        return manifest, [*([] if doubt is None else [f"It {doubt}"]), *faults]


def _doubt_of(manifest: Manifest, settings: Settings) -> str | None:
    """Return why it is not known that this deployment wrote a backup; None: its key signed it."""
    if not manifest.signature:
        return "is not signed: it was made without a secret key, or by an older Maat."
    if not has_secret_key(settings):
        return (
            "is signed, and there is no secret key here to verify it. Put secret.key of that data "
            "folder, or MAAT_SECRET_KEY, here first."
        )
    if secret_key(settings).has_signed(manifest.signed_text, manifest.signature):
        return None
    if manifest.key == _key(settings):
        return "was altered after the key here had signed it."
    return "was signed by another secret key. Put the secret.key or MAAT_SECRET_KEY of it here."


def _revision_of(database: Database) -> str | None:
    with database.engine.connect() as connection:
        return revision_of(connection)


def _of_file(database: Database) -> list[str]:
    if not database.is_sqlite:
        return []
    return sqlite_faults(sqlite.file_of(database))


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


def _refuse_while_workers_live(database: Database) -> list[str]:
    """Raise BackupError while a worker shows life. Returns a note if that cannot be read."""
    try:
        count = _living_workers(database)
    except DBAPIError as error:
        if not is_damage(error.orig):
            raise
        return ["Whether a worker lives could not be read from the damaged database."]
    if count:
        raise BackupError(
            f"{count} workers have shown life within {_LIVES.seconds} s. Stop all processes of "
            "Maat, wait that long, and try again."
        )
    return []


def _living_workers(database: Database) -> int:
    if not sa.inspect(database.engine).has_table(WorkerHeartbeat.__tablename__):
        return 0
    with database.session_scope(writes=False) as session:
        now = moment_of(session).wall
        lives = col(WorkerHeartbeat.at) > now - _LIVES
        return session.exec(select(func.count()).select_from(WorkerHeartbeat).where(lives)).one()


def _key(settings: Settings) -> str:
    return secret_key(settings).fingerprint("backup")
