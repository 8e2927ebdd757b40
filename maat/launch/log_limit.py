"""Keeps the log of a rank within its limit, while the rank goes on writing.

Of a log that is too long the beginning and the end are kept. The middle becomes a hole: its blocks
go back to the disk, and all that is kept stays where it was, for who reads on from there. The rank
neither waits nor ends by it. Where the file system makes no holes, as NFS before 4.2, nothing is
given back.
"""

from __future__ import annotations

import ctypes
import os
import stat
import sys
from contextlib import suppress

_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
_KEEP_SIZE, _PUNCH_HOLE = 1, 2
_BLOCK = 4096
_COUNTED = 512  # bytes of a block, as stat counts them


def keep_within(path: str, most: int | None) -> None:
    """Make a hole in a log that takes more than `most` bytes of the disk; never raises OSError."""
    if most is None:
        return
    with suppress(OSError):
        if os.lstat(path).st_blocks * _COUNTED > most:
            log = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                _shorten(log, most)
            finally:
                os.close(log)


def _shorten(log: int, most: int) -> None:
    found = os.fstat(log)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        return  # the job has put something else there
    note = f"\n[maat: this log takes over {most:,} bytes; its middle is left out here]\n".encode()
    half = most // 2 - 2 * _BLOCK
    begin = -(-(half + len(note)) // _BLOCK) * _BLOCK
    length = (found.st_size - half) // _BLOCK * _BLOCK - begin
    if half <= 0 or length <= 0 or _LIBC is None:
        return
    mode, where = ctypes.c_int(_KEEP_SIZE | _PUNCH_HOLE), map(ctypes.c_int64, (begin, length))
    if _LIBC.fallocate(ctypes.c_int(log), mode, *where) == 0:
        os.pwrite(log, note, begin - len(note))
