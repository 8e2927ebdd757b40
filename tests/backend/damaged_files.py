"""Damages a SQLite database as a bad disk does."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path


def damage_pages(file: Path) -> None:
    """Overwrite a quarter of the file's pages, all but the first with the schema's root."""
    with closing(sqlite3.connect(file)) as opened:
        opened.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (size,) = opened.execute("PRAGMA page_size").fetchone()
    content = bytearray(file.read_bytes())
    for page in range(1, len(content) // size, 4):
        content[page * size : (page + 1) * size] = b"\xa5" * size
    file.write_bytes(content)
