"""Unpacks a zip of measurements, which may be hostile: nothing is written to a disk.

What is unpacked is counted as it comes; what the zip says of its sizes is not believed.
"""

from __future__ import annotations

import base64
import binascii
import io
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import PurePosixPath

from backend.problems import FieldError, Invalid
from maat.api.measurements import MAX_ARCHIVE_BYTES, MAX_BYTES, MAX_FILES
from maat.compression import problem_and_remedy

_BLOCK = 64 * 1024
_POINTER = "/archive"
_NOT_MEASURED = ("__MACOSX/", ".DS_Store", "Thumbs.db")
_READABLE = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def texts_of_archive(archive: str) -> dict[str, str]:
    """Return the files of a zip in base64: name with folders -> text.

    Files that systems add of themselves are left out. Raises Invalid for what is no zip, is too
    large once unpacked, has a name that leads out of its folder, or a file that is no text.
    """
    packed = _bytes_of(archive)
    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as opened:
            return _texts(opened)
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError) as wrong:
        raise _refused(
            "unreadable", f"The zip cannot be read: {wrong}.", "Pack it again."
        ) from None


def _bytes_of(archive: str) -> bytes:
    try:
        packed = base64.b64decode(archive, validate=True)
    except (binascii.Error, ValueError):
        raise _refused("no_base64", "The archive is no base64.", "Send a zip in base64.") from None
    if len(packed) > MAX_ARCHIVE_BYTES:
        raise _refused(
            "too_large", "The zip is too large.", f"Send at most {MAX_ARCHIVE_BYTES} bytes."
        )
    return packed


def _texts(opened: zipfile.ZipFile) -> dict[str, str]:
    entries = [entry for entry in opened.infolist() if _is_measured(entry)]
    if not entries:
        raise _refused("empty", "The zip holds no files.", "Pack the files of the measurements.")
    if len(entries) > MAX_FILES:
        raise _refused(
            "too_many",
            f"The zip holds {len(entries)} files.",
            f"Pack at most {MAX_FILES}: only those of the measurements.",
        )
    texts: dict[str, str] = {}
    left = MAX_BYTES
    for entry in entries:
        _check_name(entry, texts)
        read = _unpacked(opened, entry, left)
        left -= len(read)
        texts[entry.filename] = _text_in(entry.filename, read)
    return texts


def _is_measured(entry: zipfile.ZipInfo) -> bool:
    return not entry.is_dir() and not any(
        entry.filename.startswith(name) or entry.filename.endswith(f"/{name}")
        for name in _NOT_MEASURED
    )


def _check_name(entry: zipfile.ZipInfo, before: dict[str, str]) -> None:
    name = entry.filename
    path = PurePosixPath(name)
    leads_out = path.is_absolute() or ".." in path.parts or "\\" in name or ":" in path.parts[0]
    if leads_out or not name.isprintable():
        raise _refused(
            "path", "A name in the zip leads out of its folder.", "Pack plain names.", name
        )
    if name in before:
        raise _refused(
            "twice", "Two files in the zip have this name.", "Pack every file once.", name
        )
    if entry.flag_bits & 0x1:
        raise _refused("encrypted", "A file in the zip is encrypted.", "Pack it without.", name)
    if entry.compress_type not in _READABLE:
        raise _refused("packed", "A file is packed in an unusual way.", "Pack it by deflate.", name)


def _unpacked(opened: zipfile.ZipFile, entry: zipfile.ZipInfo, most: int) -> bytes:
    """Return the bytes of a file; reading stops beyond the limit."""
    read = bytearray()
    for block in _blocks(opened, entry):
        read += block
        if len(read) > most:
            raise _refused(
                "too_large",
                "The files of the zip are too large together.",
                f"Pack at most {MAX_BYTES} bytes, as they are unpacked.",
                entry.filename,
            )
    return bytes(read)


def _blocks(opened: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Iterator[bytes]:
    with opened.open(entry) as file:
        while block := file.read(_BLOCK):
            yield block


def _text_in(name: str, read: bytes) -> str:
    if packed := problem_and_remedy(read):
        raise _refused("no_text", f"{name} {packed[0]}.", packed[1], name)
    try:
        text = read.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _refused("no_text", f"{name} is no text in UTF-8.", "Leave it out.", name) from None
    if not text.strip():
        raise _refused("empty", f"{name} is empty.", "Leave it out, or pack it again.", name)
    return text


def _refused(code: str, message: str, remedy: str, value: object = None) -> Invalid:
    error = FieldError(_POINTER, code, message, remedy, value)
    return Invalid(f"{message} {remedy}", errors=[error])
