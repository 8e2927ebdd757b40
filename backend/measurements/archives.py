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
from maat.shown_text import is_shown
from maat.vocabulary import MAX_TEXT

_BLOCK = 64 * 1024
_POINTER = "/archive"
_NOT_MEASURED = ("__MACOSX/", ".DS_Store", "Thumbs.db")
_READABLE = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def texts_of_archive(archive: str) -> dict[str, str]:
    """Return the files of a zip in base64: name with folders -> text.

    The names are such as files sent one by one may have. Files that systems add of themselves are
    left out. Raises Invalid for what is no zip, is too large once unpacked, has a name that is none
    or leads out of its folder, or a file that is no text.
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
        name = _name_of(entry)
        if name in texts:
            raise _refused(
                "twice", "Two files in the zip have this name.", "Pack every file once.", name
            )
        _check_packing(entry, name)
        read = _unpacked(opened, entry, left)
        left -= len(read)
        texts[name] = _text_in(name, read)
    return texts


def _is_measured(entry: zipfile.ZipInfo) -> bool:
    name = entry.orig_filename
    return not name.endswith("/") and not any(
        name.startswith(other) or name.endswith(f"/{other}") for other in _NOT_MEASURED
    )


def _name_of(entry: zipfile.ZipInfo) -> str:
    """Return the name with its folders, without needless `.` and `/`. Raises Invalid.

    `orig_filename` is all of it: `filename` ends before a NUL.
    """
    packed = entry.orig_filename
    path = PurePosixPath(packed)
    name = str(path)
    if not path.parts:
        raise _refused("path", "A file in the zip has no name.", "Give every file a name.", packed)
    if path.is_absolute() or ".." in path.parts or "\\" in packed or ":" in path.parts[0]:
        raise _refused(
            "path", "A name in the zip leads out of its folder.", "Pack plain names.", packed
        )
    if len(name) > MAX_TEXT:
        remedy = f"Use at most {MAX_TEXT} characters, folders included."
        raise _refused("path", "A name in the zip is too long.", remedy, packed)
    if name != name.strip() or not is_shown(name):
        raise _refused(
            "path",
            "A name in the zip holds characters that cannot be shown, or begins or ends with "
            "white space.",
            "Use letters, digits, spaces between them, and signs.",
            packed,
        )
    return name


def _check_packing(entry: zipfile.ZipInfo, name: str) -> None:
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
