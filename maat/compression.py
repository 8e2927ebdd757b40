"""Recognises compressed files by their first bytes.

Unpacks none: a small one may hold gigabytes, and the file's bound is on what is read.
"""

from __future__ import annotations

from collections.abc import Mapping

_UNPACKED_BY: Mapping[bytes, tuple[str, str]] = {
    b"\x1f\x8b": ("gzip", "gunzip"),
    b"BZh": ("bzip2", "bunzip2"),
    b"\xfd7zXZ\x00": ("xz", "unxz"),
    b"\x28\xb5\x2f\xfd": ("zstd", "unzstd"),
    b"PK\x03\x04": ("zip", "unzip"),
}
MARK_BYTES = max(map(len, _UNPACKED_BY))


def problem_and_remedy(first: bytes) -> tuple[str, str] | None:
    """Return that a file is compressed, and how to unpack it; None if it is not.

    `first`: its first MARK_BYTES bytes, or more.
    """
    for mark, (packer, command) in _UNPACKED_BY.items():
        if first.startswith(mark):
            return f"is compressed ({packer})", f"Unpack it with {command}, and give what it holds."
    return None
