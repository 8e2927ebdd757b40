"""Tables for a terminal; a narrow one gets several with the same first columns.

Nothing is cut off.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from maat.cli.terminal_text import in_one_line

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

WIDE = 1_000  # characters, if the output is not a terminal: a file cuts nothing off
WORDS = 28  # characters of a column of words before it wraps, on a narrow terminal
BORDERS = 3  # characters of every column besides its text


def drawn(names: Sequence[str], figures: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Draw columns of words, then columns of figures.

    If the width does not hold all, the columns of figures are split over several tables, each with
    the columns of words.
    """
    on = _console()
    rows = [[in_one_line(cell) for cell in row] for row in rows]
    columns = [list(column) for column in zip(*rows, strict=True)] or [
        [] for _ in (*names, *figures)
    ]
    words = [max(map(len, (name, *cells))) for name, cells in zip(names, columns, strict=False)]
    widths = [
        _width_of_figures(figure, cells)
        for figure, cells in zip(figures, columns[len(names) :], strict=True)
    ]
    if sum(words) + sum(widths) + BORDERS * (len(words) + len(widths)) >= on.width:
        words = [_width_of_words(name, cells) for name, cells in zip(names, columns, strict=False)]
    with on.capture() as captured:
        for part in _parts(widths, on.width - 1 - sum(words) - BORDERS * len(words)):
            table = _table(
                on, names, [figures[n] for n in part], [*words, *(widths[n] for n in part)]
            )
            for row in rows:
                table.add_row(*_plain([*row[: len(names)], *(row[len(names) + n] for n in part)]))
            on.print(table)
    return captured.get().removesuffix("\n")


def plain_text(picture: RenderableType) -> str:
    """Return a picture as lines of text without colours."""
    from rich.console import Console

    on = _console()
    plain = Console(width=on.width, color_system=None, force_terminal=False)
    with plain.capture() as captured:
        plain.print(picture)
    return "\n".join(line.rstrip() for line in captured.get().splitlines()).rstrip("\n")


def _console() -> Console:
    """Return a console as wide as the terminal or COLUMNS."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDE)


def _width_of_words(title: str, cells: Sequence[str]) -> int:
    longest = max(map(len, (title, *cells)))
    return min(longest, max(WORDS, _longest_word((title, *cells))))


def _width_of_figures(title: str, cells: Sequence[str]) -> int:
    return max(map(len, (max(title.split(), key=len, default=""), *cells)))


def _longest_word(texts: Sequence[str]) -> int:
    return max(len(word) for text in texts for word in text.split() or [""])


def _parts(widths: Sequence[int], room: int) -> list[list[int]]:
    """Split columns in order into parts that fit, each with at least one column."""
    parts: list[list[int]] = [[]]
    for number, width in enumerate(widths):
        taken = sum(widths[n] + BORDERS for n in parts[-1])
        if parts[-1] and taken + width + BORDERS > room:
            parts.append([])
        parts[-1].append(number)
    return parts


def _table(
    on: Console, names: Sequence[str], figures: Sequence[str], widths: Sequence[int]
) -> Table:
    """Make a table with these minimum widths.

    Long headings get the console's spare width.
    """
    from rich.table import Table

    table = Table()
    for name, width in zip(names, widths, strict=False):
        table.add_column(name, width=width)
    spare = on.width - 1 - sum(widths) - BORDERS * len(widths)
    for figure, width in zip(figures, widths[len(names) :], strict=True):
        given = min(max(len(figure) - width, 0), max(spare, 0))
        given = given if width + given >= len(figure) else 0
        spare -= given
        table.add_column(figure, justify="right", width=width + given)
    return table


def _plain(cells: Sequence[str]) -> list[Text]:
    """Make cells in which a bracket is not markup."""
    from rich.text import Text

    return [Text(cell) for cell in cells]
