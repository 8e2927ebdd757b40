"""The file of a backup: a ZIP archive of a manifest and the database. It appears whole or not.

The manifest says what the database's size and checksum are; the deployment's key signs it.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, asdict, dataclass, fields, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from maat.api.fields import rfc3339

FORMAT = 2
MANIFEST, CONTENT = "manifest.json", "database"
_CHUNK = 1 << 20
_MOST_MANIFEST_BYTES = 64 << 10

# What a damaged or hostile archive makes zipfile, its decompressors and json raise. RuntimeError is
# an encrypted member, a method that is not known, or brackets without end.
_UNREADABLE = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError),
    *(KeyError, ValueError, TypeError, RuntimeError),
)
_TEXTS = ("version", "kind", "revision", "made_at", "key", "sha256", "signature")

Kind = Literal["sqlite", "postgresql"]


class BackupError(Exception):
    """What was asked for cannot be done. The text says why, and what to do."""


@dataclass(frozen=True)
class Manifest:
    """What a backup is of. `revision`: of the schema; `key`: by what the secret key is known.

    `sha256`, `bytes`: of the database as it stands in the archive, unpacked. `signature`: of all
    the rest, by the secret key; empty if there was none, and in files of format 1.
    """

    format: int
    version: str
    kind: Kind
    revision: str
    made_at: str
    key: str
    sha256: str
    bytes: int
    signature: str = ""

    @property
    def signed_text(self) -> str:
        """Return what the signature is of."""
        return json.dumps(asdict(replace(self, signature="")), sort_keys=True)


def write_backup(
    file: Path,
    content: Path,
    *,
    kind: Kind,
    revision: str,
    key: str,
    sign: Callable[[str], str] | None = None,
) -> Manifest:
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
    if sign is not None:
        manifest = replace(manifest, signature=sign(manifest.signed_text))
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
        with zipfile.ZipFile(file) as archive, archive.open(MANIFEST) as opened:
            text = opened.read(_MOST_MANIFEST_BYTES + 1)
        manifest = _manifest_of(text)
    except (OSError, *_UNREADABLE) as error:
        reason = getattr(error, "strerror", None) or "it is not one, or damaged"
        raise BackupError(
            f"{file} cannot be read as a backup of Maat ({reason}). Give a file of "
            "`maat db backup`."
        ) from None
    if manifest.format > FORMAT:
        raise BackupError(f"{file} was made by a newer Maat ({manifest.version}): use that one.")
    return manifest


@contextmanager
def unpacked(file: Path, manifest: Manifest, folder: Path | None = None) -> Iterator[Path]:
    """Unpack the database into a folder of its own, checked against the manifest.

    Raises BackupError if it is not what was written, or there is no room for it. No more is
    written than the manifest says.
    """
    with tempfile.TemporaryDirectory(dir=folder, prefix="maat-restore-") as place:
        free = shutil.disk_usage(place).free
        if manifest.bytes > free:
            raise BackupError(
                f"{file} holds a database of {manifest.bytes} bytes, and {Path(place).parent} has "
                f"room for {free}. Make room there."
            )
        content = Path(place, CONTENT)
        try:
            _unpack(file, content, manifest.bytes)
        except _UNREADABLE:
            raise _damaged(file) from None
        except OSError as error:
            if error.errno is not None:  # of the disk; bzip2's own has none
                raise
            raise _damaged(file) from None
        if _digest(content) != manifest.sha256:
            raise _damaged(file)
        yield content


def _unpack(file: Path, content: Path, size: int) -> None:
    """Unpack the database. Raises BadZipFile if it is not of `size` bytes."""
    with zipfile.ZipFile(file) as archive, archive.open(CONTENT) as source:
        if archive.getinfo(CONTENT).file_size != size:
            raise zipfile.BadZipFile
        with content.open("wb") as target:
            while chunk := source.read(_CHUNK):
                if target.tell() + len(chunk) > size:  # its own header may lie
                    raise zipfile.BadZipFile
                target.write(chunk)
            if target.tell() != size:
                raise zipfile.BadZipFile


def _manifest_of(text: bytes) -> Manifest:
    """Raises ValueError, KeyError or TypeError for what is no manifest."""
    if len(text) > _MOST_MANIFEST_BYTES:
        raise ValueError
    written = json.loads(text)
    manifest = Manifest(
        **{
            field.name: written[field.name]
            for field in fields(Manifest)
            if field.default is MISSING or field.name in written
        }
    )
    if type(manifest.format) is not int or type(manifest.bytes) is not int or manifest.bytes < 0:
        raise ValueError
    texts = [getattr(manifest, name) for name in _TEXTS]
    if not all(isinstance(text, str) and text.isprintable() for text in texts):
        raise ValueError
    return manifest


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
