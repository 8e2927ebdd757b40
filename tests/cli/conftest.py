"""A small trace for the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.running import HEADER, ROWS


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "small.csv"
    path.write_text(HEADER + ROWS, encoding="utf-8")
    return path
