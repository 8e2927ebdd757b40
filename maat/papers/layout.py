"""How an item's table is laid out for readers: in the terminal, in Markdown and in HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MEASURE = "measure"


@dataclass(frozen=True, slots=True)
class Layout:
    """Headings of words and of numbers, and the cells of every row in that order."""

    words: Sequence[str]
    numbers: Sequence[str]
    rows: Sequence[Sequence[str]]


def layout(rows: Sequence[Mapping[str, Any]]) -> Layout:
    """Return the table of an item's rows, as `as_data` has them.

    Beside published values each measure is a row. Where nothing was published each is a column: a
    mean, with its spread over runs.
    """
    if not rows:
        return Layout((), (), ())
    columns = list(rows[0])
    labels = columns[: columns.index(MEASURE)]
    if labels and all(row["published"] is None for row in rows):
        return _by_column(rows, labels)
    words, numbers = [*labels, MEASURE, "published"], columns[len(labels) + 2 :]
    cells = [[_cell_of(row, name) for name in (*words, *numbers)] for row in rows]
    return Layout([heading(name) for name in words], [heading(name) for name in numbers], cells)


def _by_column(rows: Sequence[Mapping[str, Any]], labels: Sequence[str]) -> Layout:
    measures = list(dict.fromkeys(str(row[MEASURE]) for row in rows))
    cells: dict[tuple[str, ...], dict[str, str]] = {}
    runs: dict[tuple[str, ...], int] = {}
    for row in rows:
        of = tuple(str(row[label]) for label in labels)
        cells.setdefault(of, {})[str(row[MEASURE])] = _with_spread(row)
        runs[of] = max(runs.get(of, 0), row["runs"])
    several = max(runs.values()) > 1
    return Layout(
        list(labels),
        [*measures, *(["runs"] if several else [])],
        [
            [
                *(cell("", word) for word in of),
                *(found.get(measure, "-") for measure in measures),
                *([str(runs[of])] if several else []),
            ]
            for of, found in cells.items()
        ],
    )


def _with_spread(row: Mapping[str, Any]) -> str:
    spread = "" if row["spread"] is None else f" ± {cell('spread', row['spread'])}"
    return f"{cell('ours', row['ours'])}{spread}"


def _cell_of(row: Mapping[str, Any], column: str) -> str:
    compared = row["published"] is not None and row["ours"] is not None
    if column == "difference" and compared and row[column] is None:
        return "not 0"  # no share of a published 0
    return cell(column, row[column])


def heading(column: str) -> str:
    return {MEASURE: "", "spread": "±"}.get(column, column)


def cell(column: str, value: object) -> str:
    """Return a cell as tables show it: three digits, differences in percent."""
    if value is None:
        return "-"
    if column == "difference" and isinstance(value, float):
        return f"{value:+.1%}"
    return f"{value:.3g}" if isinstance(value, float) and abs(value) < 1000 else _text(value)


def _text(value: object) -> str:
    return f"{value:,.0f}" if isinstance(value, float) else str(value)
