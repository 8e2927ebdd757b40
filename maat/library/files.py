"""Files that are written: checked before the work, and whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from maat.scheduling.errors import InputError, MaatError, ParameterError

PROBE_BYTES = 4096  # of a disk: what it cannot take, no file fits on


def check_writable(path: Path, *, field: str, inputs: Sequence[Path] = ()) -> None:
    """Check before the work that a file can be written there, and is not an input.

    Leaves what is there as it is. `field`: what names it. Raises InputError.
    """
    read = next((given for given in inputs if _is_part_of(path, given)), None)
    if read is not None:
        raise InputError(
            f"would overwrite the input {read}",
            field=field,
            value=str(path),
            remedy="Name another file.",
        )
    new = not path.exists()
    try:
        with path.open("a", encoding="utf-8"):
            pass
        if new:
            path.unlink()
        if _is_replaced(path):
            with tempfile.TemporaryFile(dir=path.parent, buffering=0) as probe:
                probe.write(bytes(PROBE_BYTES))
    except OSError as failed:
        raise InputError(
            f"cannot be written ({failed.strerror})",
            field=field,
            value=str(path),
            remedy="Name a file in a folder that exists and has space.",
        ) from failed


def path_of(given: object, *, field: str) -> Path:
    """Return a path that is given as a text or a path. Raises ParameterError for what is none."""
    if isinstance(given, str | os.PathLike) and str(given) and "\0" not in str(given):
        return Path(given)
    raise ParameterError(
        "is no path", field=field, value=given, remedy="Give a text or a pathlib.Path."
    )


def path_or_none(given: object, *, field: str) -> Path | None:
    """Return a path, or None if none is given. Raises ParameterError for what is neither."""
    return None if given is None else path_of(given, field=field)


def write_whole(
    path: Path,
    content: bytes,
    *,
    field: str | None = None,
    remedy: str = "Give a file where there is space.",
) -> None:
    """Write a file by another name first, so that no half of it is ever seen.

    What is no regular file, such as a pipe, is written as it is. `field`: what names the file.
    Raises MaatError if it cannot be written.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        if not _is_replaced(path):
            path.write_bytes(content)
            return
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as failed:
        part.unlink(missing_ok=True)
        named = f"{path}" if field is None else f"{field}: {path}"
        raise MaatError(f"{named} cannot be written ({failed.strerror}). {remedy}") from failed


def _is_replaced(path: Path) -> bool:
    return path.is_file() or not path.exists()


def _is_part_of(path: Path, given: Path) -> bool:
    """Return whether this is the given file, by any name, or is in the given folder."""
    if path.exists() and given.exists() and path.samefile(given):
        return True
    return given.is_dir() and path.resolve().is_relative_to(given.resolve())
