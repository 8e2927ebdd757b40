"""Results kept by content key, a file each, so that what was computed is not computed again."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from maat.laboratory.content import digest
from maat.scheduling.errors import InputError, MaatError

Kept = Mapping[str, Any]
"""A result, of JSON's own types."""


class ResultCache:
    """Results by content key, one file each, in a folder that processes may share."""

    def __init__(self, folder: Path) -> None:
        """Create the folder. Raises InputError if it cannot be written."""
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as failed:
            raise InputError(
                f"cannot be written ({failed.strerror})",
                field="cache",
                value=str(folder),
                remedy="Name a folder that can be.",
            ) from failed

    def path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json"

    def load(self, key: str) -> Kept | None:
        """Return the result, or None if there is no entry.

        Raises CorruptedEntry if the entry is not what was written.
        """
        path = self.path(key)
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as unreadable:
            raise CorruptedEntry(path) from unreadable
        try:
            entry = json.loads(text)
            result: Kept = entry["figures"]
            sound = entry["key"] == key and entry["digest"] == digest(result)
        except (ValueError, KeyError, TypeError) as broken:
            raise CorruptedEntry(path) from broken
        if not sound:
            raise CorruptedEntry(path)
        return result

    def store(self, key: str, result: Kept) -> None:
        """Store an entry atomically: write another file, then rename it.

        Raises MaatError if it cannot be written.
        """
        try:
            self._write(key, result)
        except OSError as failed:
            raise MaatError(
                f"cache: {self.folder} cannot be written ({failed.strerror}). "
                "Make room, or name another folder."
            ) from failed

    def _write(self, key: str, result: Kept) -> None:
        path = self.path(key)
        path.parent.mkdir(exist_ok=True)
        text = json.dumps({"key": key, "digest": digest(result), "figures": dict(result)})
        with tempfile.NamedTemporaryFile(
            "w", dir=path.parent, suffix=".part", encoding="utf-8", delete=False
        ) as file:
            try:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            except OSError:
                Path(file.name).unlink()  # of a full disk it would keep a part
                raise
        Path(file.name).replace(path)


class CorruptedEntry(Exception):
    """A cache entry is not what was written."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} is damaged")
        self.path = path


def kept_results(
    keys: Sequence[str], cache: ResultCache | None
) -> tuple[dict[str, Kept], set[str]]:
    """Return the results in the cache, and the keys of damaged entries."""
    kept: dict[str, Kept] = {}
    damaged: set[str] = set()
    if cache is not None:
        for key in dict.fromkeys(keys):
            try:
                result = cache.load(key)
            except CorruptedEntry:
                damaged.add(key)
            else:
                if result is not None:
                    kept[key] = result
    return kept, damaged
