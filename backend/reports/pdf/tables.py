"""The tables of the PDF: the first rows, the others as one, and those that sum up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reportlab.lib.styles import ParagraphStyle
from reportlab.platypus import Flowable, Paragraph, Table, TableStyle

from backend.reports.figures.parts import shown
from backend.reports.pdf import style
from backend.reports.pdf.charts import label_of
from maat.api.report_rows import MOST_ROWS, single_rows, sum_rows, together
from maat.api.reports import ColumnOut, FigureOut

MOST_PRINTED = 15  # rows of a table that is printed whole; of a longer one MOST_ROWS, and a sum
TABLE: list[Any] = [
    ("LINEBELOW", (0, 0), (-1, 0), 0.8, style.INK),
    ("LINEBELOW", (0, 1), (-1, -1), 0.3, style.LINE),
    ("VALIGN", (0, 0), (-1, 0), "BOTTOM"),
    ("VALIGN", (0, 1), (-1, -1), "TOP"),
    ("TOPPADDING", (0, 0), (-1, -1), 2.5),
    ("BOTTOMPADDING", (0, 0), (-1, -1), 2.5),
    ("LEFTPADDING", (0, 0), (-1, -1), 2),
    ("RIGHTPADDING", (0, 0), (-1, -1), 2),
]
FOOT: list[Any] = [
    ("SPAN", (0, -1), (-1, -1)),
    ("LEFTPADDING", (0, -1), (-1, -1), 0),
    ("RIGHTPADDING", (0, -1), (-1, -1), 0),
]


def table_of(figure: FigureOut, width: float, *, foot: Sequence[Flowable]) -> Table:
    """Return the table of a figure; it goes on over pages with its heading.

    `foot`: what stands below it, on the page of its last rows.
    """
    columns = figure["columns"]
    printed, sums = _printed(figure)
    head = [
        Paragraph(
            style.markup(label_of(column)),
            style.CELL_BOLD if column["is_text"] else style.FIGURE_CELL_BOLD,
        )
        for column in columns
    ]
    rows = [
        [
            Paragraph(style.markup(cell), _cell_style(column, is_sum=at >= len(printed) - sums))
            for column, cell in zip(columns, row, strict=True)
        ]
        for at, row in enumerate(printed)
    ]
    wide = [1.9 if column["is_text"] else 1.0 for column in columns]
    last: list[Any] = [list(foot), *[""] * (len(columns) - 1)]
    table = Table(
        [head, *rows, last], colWidths=[width * part / sum(wide) for part in wide], repeatRows=1
    )
    first_sum = len(rows) - sums + 1  # row 0 is the heading
    # No page begins with the sums alone, or with what stands below the table.
    whole = ("NOSPLIT", (0, max(first_sum - 2, 0)), (0, len(rows) + 1))
    table.setStyle(TableStyle([*TABLE, *FOOT, whole]))
    if sums:
        line = ("LINEABOVE", (0, first_sum), (-1, first_sum), 0.8, style.INK)
        table.setStyle(TableStyle([line]))
    return table


def _cell_style(column: ColumnOut, *, is_sum: bool) -> ParagraphStyle:
    if column["is_text"]:
        return style.CELL_BOLD if is_sum else style.CELL
    return style.FIGURE_CELL_BOLD if is_sum else style.FIGURE_CELL


def _printed(figure: FigureOut) -> tuple[list[list[str]], int]:
    """Return the printed rows: the first ones, the others as one, and those that sum up.

    The number of the last is returned too.
    """
    sums = len(sum_rows(figure))
    single = figure["shown"][: len(figure["shown"]) - sums]
    last = figure["shown"][len(single) :]
    if len(single) <= MOST_PRINTED:
        return [*single, *last], sums
    rest = together(figure, single_rows(figure)[MOST_ROWS:])
    told = [shown(column, cell) for column, cell in zip(figure["columns"], rest, strict=True)]
    blank = ["" if cell is None else text for cell, text in zip(rest, told, strict=True)]
    return [*single[:MOST_ROWS], [f"{rest[0]} (in the CSV)", *blank[1:]], *last], sums
