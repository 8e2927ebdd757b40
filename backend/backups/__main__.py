"""Backs up, restores and checks the database of the settings. `maat db` runs it.

python -m backend.backups backup FILE
python -m backend.backups restore FILE [--force]
python -m backend.backups check [FILE]
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from backend.backups.files import BackupError
from backend.backups.service import backup, check_database, check_file, restore
from backend.database import Database
from backend.logs import first_line
from backend.schema_version import head_revision
from backend.settings import get_settings


def main() -> int:
    given = _arguments()
    settings = get_settings()
    database = Database.of(settings, connections=2)
    try:
        if given.action == "backup":
            manifest = backup(database, settings, given.file.absolute())
            words = (
                f"wrote {given.file}: {manifest.bytes} bytes of {manifest.kind}, schema "
                f"{manifest.revision}, sha256 {manifest.sha256}"
            )
            print(_shown({"file": str(given.file), **asdict(manifest)}, words, given.json))
            return 0
        if given.action == "restore":
            notes = restore(database, settings, given.file.absolute(), force=given.force)
            words = "\n".join([*notes, f"restored {given.file}"])
            told = {"restored": str(given.file), "notes": list(notes)}
            print(_shown(told, words, given.json))
            return 0
        return _check(database, given.file, as_json=given.json)
    except BackupError as error:
        print(f"maat: {error}", file=sys.stderr)
        return 2
    except SQLAlchemyError as error:
        print(f"maat: the database cannot be used ({first_line(error)})", file=sys.stderr)
        return 1
    finally:
        database.dispose()


def _shown(data: object, words: str, as_json: bool) -> str:
    return json.dumps(data, indent=2) if as_json else words


def _check(database: Database, file: Path | None, *, as_json: bool) -> int:
    if file is None:
        found, well = check_database(database), f"the database is sound, schema {head_revision()}"
    else:
        manifest, found = check_file(file.absolute())
        well = (
            f"{file} is sound: {manifest.kind}, schema {manifest.revision}, "
            f"made {manifest.made_at} by Maat {manifest.version}"
        )
    told = {"sound": not found, "faults": list(found), "words": "" if found else well}
    words = "\n".join(found or [well])
    print(_shown(told, words, as_json), file=sys.stderr if found and not as_json else sys.stdout)
    return 1 if found else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Back up, restore and check the database.")
    parser.add_argument("--json", action="store_true", help="print JSON")
    actions = parser.add_subparsers(dest="action", required=True)
    one = actions.add_parser("backup", help="write the database to a file")
    one.add_argument("file", type=Path)
    one = actions.add_parser("restore", help="write a backup into an empty database")
    one.add_argument("file", type=Path)
    one.add_argument("--force", action="store_true", help="replace what is in the database")
    one = actions.add_parser("check", help="check the database, or a backup")
    one.add_argument("file", type=Path, nargs="?")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
