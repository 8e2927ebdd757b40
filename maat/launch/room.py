"""Room on a disk, kept for what must be written though the disk has become full."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from contextlib import suppress

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
"""The errors of a disk that is full, or of a quota that is used up."""

_PROBE_BYTES = 65_536


def keep_room(path: str, size: int) -> None:
    """Keep room for a file of so many bytes, to be written by `fill_room`. Raises OSError."""
    kept = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        while size > 0:  # written, not only promised: some file systems do not keep promises
            size -= os.write(kept, b" " * size)
        os.fsync(kept)
    finally:
        os.close(kept)


def fill_room(path: str, text: bytes) -> bool:
    """Write into kept room; return False if none was kept, or too little."""
    try:
        kept = os.open(path, os.O_WRONLY)
    except FileNotFoundError:
        return False
    try:
        if os.fstat(kept).st_size < len(text):
            return False
        os.pwrite(kept, text, 0)
        os.ftruncate(kept, len(text))
        os.fsync(kept)
    finally:
        os.close(kept)
    return True


def full_folder(folders: Iterable[str]) -> str | None:
    """Return the first of these folders that takes nothing more; None if all do."""
    for folder in folders:
        probe = os.path.join(folder, f".probe.{os.urandom(4).hex()}")
        try:
            keep_room(probe, _PROBE_BYTES)
        except OSError as error:
            if error.errno in NO_ROOM:
                return folder
        finally:
            with suppress(OSError):
                os.unlink(probe)
    return None
