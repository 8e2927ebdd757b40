"""Whether the data folder takes what must be written there."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

_TRIED_BYTES = 4096


def disk_problem(folder: Path, *, least_free_bytes: int) -> str | None:
    """Return why nothing more can be written below `folder`; None if it can.

    It writes a small file, since a quota or a read-only file system shows in no figure.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(_TRIED_BYTES))
            file.flush()
            os.fsync(file.fileno())
        free = shutil.disk_usage(folder).free
    except OSError as failed:
        return f"Nothing can be written to the data folder ({failed.strerror})."
    if free < least_free_bytes:
        return (
            f"The data folder has {free // 2**20} MiB left, less than {least_free_bytes // 2**20}."
        )
    return None
