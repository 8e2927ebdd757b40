"""Copies a PostgreSQL database by PostgreSQL's own programs, of the server's version."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import sqlalchemy as sa

from backend.backups.files import BackupError
from backend.database import Database

DEBIAN = Path("/usr/lib/postgresql")
_PATH = "SET search_path = public"  # a dump leaves none
_FRESH = "DROP SCHEMA public CASCADE; CREATE SCHEMA public"


class CheckFailed(Exception):
    """What was written breaks a rule, so that all of it was taken back."""


def dump(database: Database, content: Path) -> None:
    """Write the database to `content` in pg_dump's custom form: one moment, while others write."""
    program = program_of("pg_dump", _server_major(database))
    compressed_by_the_archive = "--compress=0"
    given = ["--format=custom", compressed_by_the_archive, "--no-owner", "--no-privileges"]
    _run([str(program), *given, "--file", str(content)], database)


def load(
    database: Database, content: Path, *, empty_first: bool, checks: Sequence[str] = ()
) -> None:
    """Write `content` into the database, in one transaction: all of it or nothing.

    `empty_first`: what is there is dropped in the same transaction. `checks`: statements that fail
    in that transaction if what was written must not be. Raises CheckFailed then.
    """
    major = _server_major(database)
    script = content.with_suffix(".sql")
    restore, psql = program_of("pg_restore", major), program_of("psql", major)
    given = ["--no-owner", "--no-privileges", "--file", str(script), str(content)]
    _run([str(restore), *given], database)
    before = ["--command", _FRESH] if empty_first else []
    options = ["--no-psqlrc", "--quiet", "--single-transaction", "--set", "ON_ERROR_STOP=1"]
    after = [word for check in (_PATH, *checks) for word in ("--command", check)]
    _run([str(psql), *options, *before, "--file", str(script), *after], database)


def program_of(name: str, major: int) -> Path:
    """Find PostgreSQL's program of the server's version, or the next newer one.

    An older one cannot read what the server has. Raises BackupError.
    """
    found: dict[int, Path] = {}
    on_path = shutil.which(name)
    places = sorted(DEBIAN.glob(f"*/bin/{name}")) + ([Path(on_path)] if on_path else [])
    for place in places:
        told = subprocess.run([place, "--version"], capture_output=True, text=True, check=False)
        known = re.search(r"\(PostgreSQL\) (\d+)", told.stdout)
        if known is not None:
            found[int(known.group(1))] = place
    usable = [version for version in found if version >= major]
    if not usable:
        there = ", ".join(map(str, sorted(found))) or "none"
        raise BackupError(
            f"{name} of PostgreSQL {major} is not installed (found: {there}). Install the client "
            f"programs, such as the Debian package postgresql-client-{major}."
        )
    return found[min(usable)]


def _server_major(database: Database) -> int:
    with database.engine.connect() as connection:
        number = connection.execute(sa.text("SHOW server_version_num")).scalar_one()
    return int(number) // 10_000


def _run(command: Sequence[str], database: Database) -> None:
    """Run a program of PostgreSQL. The password goes by its environment, which nobody else sees."""
    url = database.engine.url
    environment = {
        **os.environ,
        **{
            name: str(value)
            for name, value in (
                ("PGHOST", url.query.get("host", url.host)),
                ("PGPORT", url.port),
                ("PGUSER", url.username),
                ("PGPASSWORD", url.password),
                ("PGDATABASE", url.database),
            )
            if value is not None
        },
        "PGOPTIONS": "-c client_min_messages=warning",
    }
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["it says nothing"]
        error = next((line for line in lines if "ERROR:" in line), lines[-1])
        _, is_untrue, rule = error.partition("not true: ")
        if is_untrue:
            raise CheckFailed(is_untrue + rule)
        raise BackupError(f"{Path(command[0]).name} failed: {error}")
