"""A digest of the files of an own policy: results of other code are not taken for its own."""

from __future__ import annotations

import hashlib
import sys
from functools import lru_cache
from pathlib import Path


@lru_cache(maxsize=64)
def code_digest(module: str) -> str:
    """Return a sha256 over the source files beside a module, of its whole package.

    64 hexadecimal digits. A module without a file (of an interpreter) counts by its name.
    """
    hashed = hashlib.sha256(module.encode())
    for path in _files(module):
        hashed.update(path.name.encode())
        hashed.update(path.read_bytes())
    return hashed.hexdigest()


def _files(module: str) -> list[Path]:
    top = sys.modules.get(module.partition(".")[0])
    folders = list(getattr(top, "__path__", ()))
    if folders:
        return sorted(path for folder in folders for path in Path(folder).rglob("*.py"))
    file = getattr(sys.modules.get(module), "__file__", None)
    return [] if file is None else [Path(file)]
