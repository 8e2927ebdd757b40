"""Recognises files that are no text by their first bytes: compressed ones, workbooks, tables.

Unpacks none: a small one may hold gigabytes, and the file's bound is on what is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

_UNPACKED_BY: Mapping[bytes, tuple[str, str]] = {
    b"\x1f\x8b": ("gzip", "gunzip"),
    b"BZh": ("bzip2", "bunzip2"),
    b"\xfd7zXZ\x00": ("xz", "unxz"),
    b"\x28\xb5\x2f\xfd": ("zstd", "unzstd"),
    b"\x04\x22\x4d\x18": ("lz4", "unlz4"),
    b"7z\xbc\xaf\x27\x1c": ("7z", "7z x"),
    b"PK\x03\x04": ("zip", "unzip"),
}
_BZIP2_BLOCK = b"1AY&SY"  # behind BZh and a digit, with which a word may begin
_OF_WORKBOOKS = (b"[Content_Types].xml", b"_rels/", b"xl/", b"opendocument.spreadsheet")
_WORKBOOK = "is a workbook, no text", "Save its sheet as CSV in UTF-8, and give that."
_COLUMNAR = "is a table in a binary format", "Write it as CSV, and give that."
_OTHERS: Mapping[bytes, tuple[str, str]] = {
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": _WORKBOOK,
    b"PAR1": _COLUMNAR,
    b"ARROW1": _COLUMNAR,
    b"SQLite format 3\x00": _COLUMNAR,
}
MARK_BYTES = 128  # a workbook is known by the names in it


def problem_and_remedy(first: bytes) -> tuple[str, str] | None:
    """Return that a file is compressed or no text, and what to give instead; None if it is not.

    `first`: its first MARK_BYTES bytes, or more.
    """
    return _problem(first, lambda mark: mark)


def problem_of_text(text: str) -> tuple[str, str] | None:
    """Return the same of a text that was made of the bytes of a file by UTF-8 or Latin-1."""
    first = text[:MARK_BYTES]
    if first.isascii() and first.isprintable() and not first.startswith("BZh"):  # most texts
        return None
    as_latin_1 = first.encode("latin-1", "replace")
    return problem_and_remedy(as_latin_1) or _problem(
        first.encode(), lambda mark: mark.decode("utf-8", "replace").encode()
    )


def _problem(first: bytes, written: Callable[[bytes], bytes]) -> tuple[str, str] | None:
    """`written`: how bytes stand in what is given."""
    for mark, (packer, command) in _UNPACKED_BY.items():
        if not first.startswith(written(mark)):
            continue
        if packer == "bzip2" and first[4:10] != _BZIP2_BLOCK:
            continue
        if packer == "zip" and any(name in first[:MARK_BYTES] for name in _OF_WORKBOOKS):
            return _WORKBOOK
        return f"is compressed ({packer})", f"Unpack it with {command}, and give what it holds."
    return next((each for mark, each in _OTHERS.items() if first.startswith(written(mark))), None)
