"""Reads what the ranks of attempts have written: in parts, as text, or as a whole."""

from __future__ import annotations

import codecs
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, cast

from backend.attempts.folders import attempt_folder
from backend.problems import NotFound
from maat.api.attempts import LogOut
from maat.launch.attempt_dir import AttemptDir

LAST_LINES, LAST_BYTES = 20, 4096
_PORTION = 64 * 1024
_LONGEST_CHARACTER = 4


def open_log(cluster: Path, attempt_id: str, rank: int) -> BinaryIO:
    """Open the log of a rank. Raises NotFound if there is none."""
    path = AttemptDir(str(attempt_folder(cluster, attempt_id))).log(rank)
    try:
        # The job's own processes may have put something else there.
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        raise NotFound(
            f"There is no log of rank {rank}: it has not begun, or is too old."
        ) from None
    file = cast(BinaryIO, os.fdopen(number, "rb", buffering=0))  # os.lseek moves it too
    if not stat.S_ISREG(os.fstat(number).st_mode):
        file.close()
        raise NotFound(f"The log of rank {rank} is no file any more.")
    return file


def size_of(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size


def read_part(file: BinaryIO, offset: int, limit: int, *, ended: bool) -> LogOut:
    """Return text from the character at `offset` on, at most `limit` bytes of it.

    A character that is not whole yet is left to the next call, unless nothing more will come. What
    was left out of a log that is too long is passed over.
    """
    total = size_of(file)
    start = _start_of_character(file, _kept_from(file, min(offset, total)))
    left_out = _kept_until(file, start, total) - start
    file.seek(start)
    data = file.read(min(limit, left_out))
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    end = start + len(data)
    is_cut = left_out <= limit and end < total
    is_last = is_cut or (ended and end >= total)
    text = decoder.decode(data, final=is_last)
    after = end - (0 if is_last else len(decoder.getstate()[0]))
    return LogOut(
        text=text,
        offset=start,
        next_offset=after,
        total_bytes=total,
        ended=ended and after >= total,
    )


def kept_parts(file: BinaryIO) -> list[tuple[int, int]]:
    """Return from where to where there is text: a log that is too long has lost its middle."""
    total, found, at = size_of(file), list[tuple[int, int]](), 0
    while (start := _kept_from(file, at)) < total:
        at = _kept_until(file, start, total)
        found.append((start, at))
    return found


def read_whole(file: BinaryIO, parts: Sequence[tuple[int, int]]) -> Iterator[bytes]:
    """Yield these parts, and close the file."""
    with file:
        for start, end in parts:
            file.seek(start)
            left = end - start
            while left > 0 and (data := file.read(min(_PORTION, left))):
                left -= len(data)
                yield data


def last_lines(cluster: Path, attempt_id: str, rank: int) -> list[str]:
    """Return the last lines of a rank's log, few and short; none if there is no log."""
    try:
        file = open_log(cluster, attempt_id, rank)
    except NotFound:
        return []
    with file:
        part = read_part(file, max(size_of(file) - LAST_BYTES, 0), LAST_BYTES, ended=True)
    lines = part["text"].replace("\0", "\N{REPLACEMENT CHARACTER}").splitlines()
    is_cut = part["offset"] > 0 and len(lines) > 1
    return lines[1 if is_cut else 0 :][-LAST_LINES:]


def _kept_from(file: BinaryIO, offset: int) -> int:
    """Return the first offset from this one on at which something is kept."""
    try:
        return os.lseek(file.fileno(), offset, os.SEEK_DATA)
    except OSError:  # it is the end
        return max(offset, size_of(file))


def _kept_until(file: BinaryIO, start: int, total: int) -> int:
    """Return where the text from `start` on ends, or is left out."""
    if start >= total:
        return total
    return min(os.lseek(file.fileno(), start, os.SEEK_HOLE), total)


def _start_of_character(file: BinaryIO, offset: int) -> int:
    """Return where the character begins that the byte at `offset` belongs to."""
    first = max(offset - _LONGEST_CHARACTER + 1, 0)
    file.seek(first)
    around = file.read(offset - first + _LONGEST_CHARACTER - 1)
    for start in range(first, offset):
        for end in range(offset + 1, min(start + _LONGEST_CHARACTER, first + len(around)) + 1):
            if _is_character(around[start - first : end - first]):
                return start
    return offset


def _is_character(data: bytes) -> bool:
    try:
        return len(data.decode()) == 1
    except UnicodeDecodeError:
        return False
