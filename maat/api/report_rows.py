"""Rows of a figure of a report: single ones, those that sum up, and many single ones as one.

Page and PDF draw and print the same rows by this. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from maat.api.reports import Cell, FigureOut

MOST_ROWS = 12
"""Rows that a figure draws and a printed table has; CSV, JSON and the page's tables have all."""
_SUMS_OF_FORM_1 = ("all tenants", "idle")


def single_rows(of: FigureOut) -> list[list[Cell]]:
    """Return the rows of single tenants, types or days."""
    return of["rows"][: len(of["rows"]) - _sums(of)]


def sum_rows(of: FigureOut) -> list[list[Cell]]:
    """Return the last rows, which sum up others."""
    return of["rows"][len(of["rows"]) - _sums(of) :]


def drawn_rows(of: FigureOut, keys: Sequence[str]) -> tuple[list[list[Cell]], int]:
    """Return the rows that a chart of these columns draws, and how many it leaves out.

    Beyond MOST_ROWS the others are one row where their cells add up; else they are left out.
    """
    places = [at for at, column in enumerate(of["columns"]) if column["key"] in keys]
    known = [row for row in single_rows(of) if any(row[place] is not None for place in places)]
    shown, rest = known[:MOST_ROWS], known[MOST_ROWS:]
    if rest and all(of["columns"][place].get("adds") for place in places):
        return [*shown, together(of, rest)], 0
    return shown, len(rest)


def together(of: FigureOut, rows: Sequence[Sequence[Cell]]) -> list[Cell]:
    """Return rows as one: sums in columns whose cells add up, None in the others."""
    _, *columns = of["columns"]
    cells: list[Cell] = [f"{len(rows)} others"]
    for at, column in enumerate(columns, start=1):
        values = [cell for row in rows if isinstance(cell := row[at], int | float)]
        cells.append(sum(values) if column.get("adds") and values else None)
    return cells


def _sums(of: FigureOut) -> int:
    """Return how many rows sum up others. Kept reports of form 1 do not say it."""
    if "sum_rows" in of:
        return of["sum_rows"]
    return sum(row[0] in _SUMS_OF_FORM_1 for row in of["rows"])
