"""The reports that docs/papers keeps, read back: an item's title, sentence and published values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from maat.papers.items import Paper

REPORTS = Path(__file__).parents[2] / "docs" / "papers"
_COST = "CPU time of its simulations: "
_NUMBER = re.compile(r"[-+]?\d[\d,.]*\d|[-+]?\d")
# what sentences say by the figures that came out, besides numbers
_FOUND = re.compile(r"\b(cannot|can) hold|([\w-]+ at #(, )?)+")


@dataclass(frozen=True)
class KeptItem:
    """An item of a report. `published`: by the labels of its row and the measure, as printed."""

    title: str
    sentence: str
    published: Mapping[tuple[str, ...], str]


def kept_items(paper: Paper) -> Mapping[str, KeptItem]:
    """Return the items of a paper's report by title; empty if none is kept."""
    path = REPORTS / paper.name / "README.md"
    if not path.exists():
        return {}
    items = map(_kept, path.read_text(encoding="utf-8").split("\n## ")[1:])
    return {item.title: item for item in items}


def constant(sentence: str) -> str:
    """Return what of a sentence is the same whatever came out: it is without figures."""
    return _FOUND.sub("...", _NUMBER.sub("#", sentence))


def _kept(section: str) -> KeptItem:
    title, *lines = section.split("\n")
    table = [line for line in lines if line.startswith("|")]
    words = [line for line in lines if line and not line.startswith(("|", "![", _COST))]
    return KeptItem(title, words[0], _published(table))


def _published(table: list[str]) -> Mapping[tuple[str, ...], str]:
    if not table:
        return {}
    head, _, *rows = ([cell.strip() for cell in line.strip("| ").split(" | ")] for line in table)
    if "published" not in head:
        return {}
    place = head.index("published")
    return {tuple(row[:place]): row[place] for row in rows}
