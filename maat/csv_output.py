"""CSV text that a spreadsheet opens without running what stands in it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

_BEGINS_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[str | float | None]]) -> str:
    """Return CSV text. Texts that a spreadsheet would run are defused; numbers are as they are."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow(_cell(value) for value in row)
    return text.getvalue()


def defused(text: str) -> str:
    """Return a text with an apostrophe before it if a spreadsheet would take it for a formula."""
    return f"'{text}" if text.startswith(_BEGINS_FORMULA) else text


def _cell(value: str | float | None) -> str:
    if value is None:
        return ""
    return defused(value) if isinstance(value, str) else repr(value)
