"""The file of a backup: a ZIP archive of a manifest and the database. It appears whole or not."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from maat.api.fields import rfc3339

FORMAT = 1
MANIFEST, CONTENT = "manifest.json", "database"
_CHUNK = 1 << 20

Kind = Literal["sqlite", "postgresql"]


class BackupError(Exception):
    """What was asked for cannot be done. The text says why, and what to do."""


@dataclass(frozen=True)
class Manifest:
    """What a backup is of. `revision`: of the schema; `key`: by what the secret key is known.

    `sha256`, `bytes`: of the database as it stands in the archive, unpacked.
    """

    format: int
    version: str
    kind: Kind
    revision: str
    made_at: str
    key: str
    sha256: str
    bytes: int


def write_backup(file: Path, content: Path, *, kind: Kind, revision: str, key: str) -> Manifest:
    """Write the archive beside `file` and rename it, once it is on the disk."""
    manifest = Manifest(
        format=FORMAT,
        version=version("maat"),
        kind=kind,
        revision=revision,
        made_at=rfc3339(datetime.now(UTC)),
        key=key,
        sha256=_digest(content),
        bytes=content.stat().st_size,
    )
    descriptor, part = tempfile.mkstemp(dir=file.parent, prefix=f"{file.name}.")
    try:
        with os.fdopen(descriptor, "wb") as opened:  # its owner's only, as mkstemp makes it
            with zipfile.ZipFile(opened, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
                archive.writestr(MANIFEST, json.dumps(asdict(manifest), indent=1))
                archive.write(content, CONTENT)
            opened.flush()
            os.fsync(opened.fileno())
        Path(part).replace(file)
    finally:
        Path(part).unlink(missing_ok=True)
    return manifest


def read_manifest(file: Path) -> Manifest:
    """Raises BackupError for what is no backup of Maat, or one of a newer form."""
    try:
        with zipfile.ZipFile(file) as archive:
            found = json.loads(archive.read(MANIFEST))
        manifest = Manifest(**{one.name: found[one.name] for one in fields(Manifest)})
    except (OSError, zipfile.BadZipFile, KeyError, ValueError, TypeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not one, or damaged"
        raise BackupError(
            f"{file} cannot be read as a backup of Maat ({reason}). Give a file of "
            "`maat db backup`."
        ) from None
    if manifest.format > FORMAT:
        raise BackupError(f"{file} was made by a newer Maat ({manifest.version}): use that one.")
    return manifest


@contextmanager
def unpacked(file: Path, folder: Path | None = None) -> Iterator[tuple[Manifest, Path]]:
    """Unpack the database into a folder of its own, checked against the manifest.

    Raises BackupError if it is not what was written.
    """
    manifest = read_manifest(file)
    with tempfile.TemporaryDirectory(dir=folder, prefix="maat-restore-") as place:
        content = Path(place, CONTENT)
        try:
            with zipfile.ZipFile(file) as archive:
                archive.extract(CONTENT, place)
        except (zipfile.BadZipFile, KeyError, EOFError):
            raise _damaged(file) from None
        if (content.stat().st_size, _digest(content)) != (manifest.bytes, manifest.sha256):
            raise _damaged(file)
        yield manifest, content


def kind_of(is_sqlite: bool) -> Kind:
    return "sqlite" if is_sqlite else "postgresql"


def _damaged(file: Path) -> BackupError:
    return BackupError(f"{file} is damaged: its checksum is not that of its manifest. Use another.")


def _digest(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        while chunk := opened.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
