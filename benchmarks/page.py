"""Writes Markdown tables between two marks of a page in docs/."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def markdown(heading: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Write a table, one line per row."""
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def write_between(path: Path, text: str, *, begin: str, end: str) -> None:
    """Replace the text between the two marks of a file."""
    before, _, rest = path.read_text(encoding="utf-8").partition(begin)
    after = rest.partition(end)[2]
    path.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", encoding="utf-8")
