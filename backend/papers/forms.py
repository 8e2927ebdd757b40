"""A reproduction as files: one report of its items, and the table of one as CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from backend.papers.models import ReproducedItem, Reproduction
from backend.papers.service import known_item
from backend.problems import Conflict
from maat.csv_output import csv_text
from maat.papers.bench import Size
from maat.papers.catalogue import REPORTS
from maat.papers.report import report_html, report_markdown

ReportForm = Literal["html", "md"]
MEDIA_TYPES: Mapping[ReportForm, str] = {
    "html": "text/html; charset=utf-8",
    "md": "text/markdown; charset=utf-8",
}
_MEASURED = ("measure", "published", "ours", "difference", "spread", "runs")


def report_of(reproduction: Reproduction, items: Sequence[ReproducedItem], form: ReportForm) -> str:
    """Return the report of the items that were made. Raises Conflict if there is none yet."""
    made = [_data(reproduction, item) for item in items if item.result is not None]
    if not made:
        raise Conflict("No item of the reproduction was made yet.", headers={"Retry-After": "5"})
    paper = REPORTS.get(reproduction.paper)
    title = reproduction.paper if paper is None else paper.title
    size, asked = Size(reproduction.size), reproduction.created_at
    sentence = f"Made by Maat's service, as asked for at {asked:%Y-%m-%d %H:%M} UTC."
    write = report_html if form == "html" else report_markdown
    return write(title, size, made, made=sentence)


def table_of(item: ReproducedItem) -> str:
    """Return an item's table as CSV. Raises Conflict if it was not made."""
    if item.result is None:
        raise Conflict(f"The item has no table: it is {item.state}.", headers={"Retry-After": "5"})
    rows = _rows(item.result)
    columns = [*item.result["labels"], *_MEASURED]
    return csv_text(columns, (tuple(row.values()) for row in rows))


def _data(reproduction: Reproduction, item: ReproducedItem) -> Mapping[str, Any]:
    """Return an item as reports take it."""
    known, result = known_item(reproduction.paper, item.item), item.result
    return {
        "paper": reproduction.paper,
        "item": item.item,
        "title": result.get("title", item.item if known is None else known.title),
        "emulated": known is not None and known.emulated,
        "rows": _rows(result),
        "why": result["why"],
        "notes": result["notes"],
        "cpu_minutes": result["cpu_minutes"],
        "figure": result["figure"],
        "pictures": False,
    }


def _rows(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the rows of a table by its columns."""
    return [
        dict(zip(result["labels"], row["of"], strict=True))
        | {name: row[name] for name in _MEASURED}
        for row in result["rows"]
    ]
