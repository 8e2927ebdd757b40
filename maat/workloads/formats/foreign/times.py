"""Times in another system's records: dates, or seconds since 1970."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from maat.vocabulary import MAX_SECONDS
from maat.workloads.formats.foreign.records import Cells, Unusable, number_in


def _date(text: str) -> float | None:
    """Return a date as seconds since 1970; UTC without a zone."""
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (OverflowError, ValueError):
        return None


_KINDS: Mapping[str, Callable[[str], float | None]] = {
    "a date": _date,
    "a number of seconds": number_in,
}
"""Some digits are both, such as 20260131: a date, unless the column holds seconds."""


class Times:
    """Reads the times of one file. The first of a column says which kind the column holds."""

    def __init__(self) -> None:
        self._kinds: dict[str, str] = {}

    def cell(self, cells: Cells, column: str) -> float:
        """Return a time as seconds since 1970. Raises Unusable."""
        text = cells[column]
        found = {kind: value for kind in _KINDS if (value := _KINDS[kind](text)) is not None}
        if not found:
            raise Unusable(
                f"{column} is no time",
                column=column,
                value=text,
                remedy="Write 2026-01-31T12:00:00, or seconds.",
            )
        here = next(iter(found))
        expected = self._kinds.setdefault(column, here)
        if expected not in found:
            raise Unusable(
                f"{column} is {here}, but {expected} in rows before it",
                column=column,
                value=text,
                remedy="Write all times of a column alike: as dates, or as seconds.",
            )
        if not 0.0 <= found[expected] <= MAX_SECONDS:
            raise Unusable(
                f"{column} is negative or too far ahead",
                column=column,
                value=text,
                remedy="Correct the clock of the record.",
            )
        return found[expected]
