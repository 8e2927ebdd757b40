"""Items of reproductions: finds their runs, and shows what came out. Knows no broker and no queue.

Finding an item's runs takes a second, so a process remembers those that it opened last.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from backend.papers.data import PublishedData
from maat.papers.bench import Bench, Size
from maat.papers.catalogue import item_of, paper_of
from maat.papers.data import Data
from maat.papers.reproducing import OpenItem, Reproduced, open_item
from maat.scheduling.errors import MaatError

MOST_REMEMBERED = 8


class NotMade(MaatError):
    """An item cannot be made. The message says why."""


def opened(paper: str, key: str, size: str, published: PublishedData) -> OpenItem:
    """Return an item with its runs. Raises NotMade; what it raises is not remembered."""
    return _opened(paper, key, Size(size), published.data)


@lru_cache(maxsize=MOST_REMEMBERED)
def _opened(name: str, key: str, size: Size, data: Data) -> OpenItem:
    paper = paper_of(name)
    found = open_item(paper, item_of(paper, key), Bench(data, size))
    if isinstance(found, Reproduced):
        raise NotMade(found.failed or "")
    return found


def result_of(made: Reproduced, published: PublishedData) -> Mapping[str, Any]:
    """Return what is kept of an item. Raises NotMade if it failed."""
    if made.failed is not None:
        raise NotMade(made.failed)
    measured = ("measure", "published", "ours", "difference", "spread", "runs")
    return {
        "title": made.title,
        "labels": list(made.labels),
        "rows": [
            {"of": list(row.of)} | {name: cells[name] for name in measured}
            for row, cells in zip(made.rows, made.table, strict=True)
        ],
        "why": made.why,
        "notes": [published.without_path(note) for note in made.notes],
        "cpu_minutes": round(made.cpu_seconds / 60, 2),
        "figure": None if made.figure is None else json.loads(made.figure.to_json()),
    }
