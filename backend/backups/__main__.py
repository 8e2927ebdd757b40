"""Backs up, restores and checks the database of the settings. `maat db` runs it.

python -m backend.backups backup FILE
python -m backend.backups restore FILE [--force] [--unverified]
python -m backend.backups check [FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TextIO

from sqlalchemy.exc import SQLAlchemyError

from backend.backups.files import BackupError
from backend.backups.service import backup, check_database, check_file, restore
from backend.backups.sqlite import check_is_there
from backend.database import Database
from backend.logs import first_line
from backend.schema_version import head_revision
from backend.settings import Settings, get_settings


def main() -> int:
    os.umask(0o077)  # the database holds every tenant's jobs: it is for this user alone
    given = _arguments()
    try:
        if given.action == "check" and given.file is not None:
            return _check_file(given)
        return _with_database(given)
    except BackupError as error:
        print(f"maat: {error}", file=sys.stderr)
        return 2
    except SQLAlchemyError as error:
        print(f"maat: the database cannot be used ({first_line(error)})", file=sys.stderr)
        return 1


def _with_database(given: argparse.Namespace) -> int:
    settings = get_settings()
    if given.action != "restore":
        check_is_there(settings.sqlalchemy_url)
    database = Database.of(settings, connections=2)
    try:
        match given.action:
            case "backup":
                return _backup(database, settings, given)
            case "restore":
                return _restore(database, settings, given)
            case _:
                words = f"the database is sound, schema {head_revision()}"
                return _show_check(check_database(database), words, as_json=given.json)
    finally:
        database.dispose()


def _backup(database: Database, settings: Settings, given: argparse.Namespace) -> int:
    manifest = backup(database, settings, given.file.absolute(), force=given.force)
    words = (
        f"wrote {given.file}: {given.file.stat().st_size} bytes ({manifest.bytes} unpacked) of "
        f"{manifest.kind}, schema {manifest.revision}, sha256 {manifest.sha256}, "
        + ("signed" if manifest.signature else "not signed: there is no secret key here")
    )
    _show({"file": str(given.file), **asdict(manifest)}, words, as_json=given.json)
    return 0


def _restore(database: Database, settings: Settings, given: argparse.Namespace) -> int:
    notes = restore(
        database,
        settings,
        given.file.absolute(),
        force=given.force,
        unverified=given.unverified,
    )
    words = "\n".join([*notes, f"restored {given.file}"])
    _show({"restored": str(given.file), "notes": list(notes)}, words, as_json=given.json)
    return 0


def _check_file(given: argparse.Namespace) -> int:
    manifest, found = check_file(given.file.absolute(), get_settings())
    words = (
        f"{given.file} is sound: {manifest.kind}, schema {manifest.revision}, "
        f"made {manifest.made_at} by Maat {manifest.version}"
    )
    return _show_check(found, words, as_json=given.json)


def _show_check(found: Sequence[str], well: str, *, as_json: bool) -> int:
    told = {"sound": not found, "faults": list(found), "words": "" if found else well}
    words = "\n".join(found or [well])
    _show(told, words, as_json=as_json, file=sys.stderr if found and not as_json else sys.stdout)
    return 1 if found else 0


def _show(data: object, words: str, *, as_json: bool, file: TextIO | None = None) -> None:
    print(json.dumps(data, indent=2) if as_json else words, file=file)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Back up, restore and check the database.")
    parser.add_argument("--json", action="store_true", help="print JSON")
    actions = parser.add_subparsers(dest="action", required=True)
    one = actions.add_parser("backup", help="write the database to a file")
    one.add_argument("file", type=Path)
    one.add_argument("--force", action="store_true", help="replace a file that there is")
    one = actions.add_parser("restore", help="write a backup into an empty database")
    one.add_argument("file", type=Path)
    one.add_argument("--force", action="store_true", help="replace what is in the database")
    one.add_argument(
        "--unverified", action="store_true", help="also what is not signed by the key here"
    )
    one = actions.add_parser("check", help="check the database, or a backup")
    one.add_argument("file", type=Path, nargs="?")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
