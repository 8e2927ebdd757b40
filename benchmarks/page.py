"""A page of docs/ as benchmarks write it: Markdown tables, put between two marks. Not responsible for what they say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def markdown(heading: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table, one line per row."""
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def write_between(path: Path, text: str, *, begin: str, end: str) -> None:
    """Put `text` between the two marks of a file, in place of what stands there."""
    before, _, rest = path.read_text(encoding="utf-8").partition(begin)
    after = rest.partition(end)[2]
    path.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", encoding="utf-8")
