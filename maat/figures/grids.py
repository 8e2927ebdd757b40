"""Grids: heat maps with a scale of colours, and tables of texts."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from maat.figures.axes import titled_figure
from maat.figures.bars import NOTHING
from maat.figures.base import empty_figure
from maat.figures.texts import escape
from maat.figures.theme import palette, template

MOST_WRITTEN = 200  # cells that have their numbers in them
ROW_PIXELS, HEAD_PIXELS = 26, 30


def heat_map(
    rows: Sequence[str],
    columns: Sequence[str],
    values: Sequence[Sequence[float | None]],
    *,
    x: str,
    y: str,
    value: str,
    middle: float | None = None,
    form: str = ".3g",
    scheme: str | None = None,
    height: int | None = None,
    nothing: str = NOTHING,
) -> go.Figure:
    """Return a grid of coloured cells, grey where a value is None.

    Args:
        rows: Names of the R rows, the first one above.
        columns: Names of the C columns.
        values: R rows of C values.
        x: Title of the axis of columns.
        y: Title of the axis of rows.
        value: Title of the scale of colours, with its unit.
        middle: Value from which colours part to two sides, such as 1 of a ratio; None: one scale.
        form: How numbers are written, as in `format`.
        nothing: What an empty figure says.

    >>> drawn = heat_map(
    ...     ["sia"], ["Philly", "Helios"], [[1.0, None]], x="Trace", y="Policy", value="JCT (hours)"
    ... )
    >>> list(map(list, drawn.data[0].text))
    [['1', '']]
    """
    if not any(cell is not None for row in values for cell in row):
        return empty_figure(scheme, nothing, height=height)
    drawn = titled_figure(scheme, x=x, y=y, height=height)
    written = len(rows) * len(columns) <= MOST_WRITTEN
    drawn.add_trace(
        go.Heatmap(
            z=[list(row) for row in values],
            x=[escape(name) for name in columns],
            y=[escape(name) for name in rows],
            text=[["" if cell is None else f"{cell:{form}}" for cell in row] for row in values],
            texttemplate="%{text}" if written else None,
            hovertemplate="%{y}, %{x}: %{text}<extra></extra>",
            colorscale="Cividis" if middle is None else "PuOr_r",
            zmid=middle,
            xgap=1,
            ygap=1,
            hoverongaps=False,
            colorbar={
                "title": {"text": escape(value), "side": "right", "font": {"size": 12}},
                "outlinewidth": 0,
            },
        )
    )
    drawn.update_xaxes(type="category", showline=False)
    drawn.update_yaxes(type="category", autorange="reversed", showgrid=False)
    drawn.add_shape(
        type="rect",
        x0=-0.5,
        x1=len(columns) - 0.5,
        y0=-0.5,
        y1=len(rows) - 0.5,
        fillcolor=palette(scheme).free,
        line={"width": 0},
        layer="below",
    )
    return drawn.update_layout(hovermode="closest")


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    form: str = ".4g",
    scheme: str | None = None,
    nothing: str = NOTHING,
) -> go.Figure:
    """Return a table as a figure, to stand beside others: numbers are at the right.

    Args:
        columns: Names of the C columns, with their units.
        rows: Rows of C cells; None is empty.
        form: How numbers are written, as in `format`.
        nothing: What an empty table says.

    >>> drawn = table(["Policy", "JCT (hours)"], [["sia", 1.23456], ["fifo", None]])
    >>> drawn.data[0].cells["values"]
    (['sia', 'fifo'], ['1.235', ''])
    """
    if not rows:
        return empty_figure(scheme, nothing)
    ink = palette(scheme)
    cells = [[row[place] for row in rows] for place in range(len(columns))]
    sides = [
        "right" if all(isinstance(cell, int | float | None) for cell in column) else "left"
        for column in cells
    ]
    drawn = go.Figure(
        go.Table(
            header={
                "values": [escape(name) for name in columns],
                "align": sides,
                "fill_color": ink.free,
                "font": {"color": ink.text},
                "line_color": ink.line,
                "height": HEAD_PIXELS,
            },
            cells={
                "values": [[_written(cell, form) for cell in column] for column in cells],
                "align": sides,
                "fill_color": ink.card,
                "font": {"color": ink.text},
                "line_color": ink.line,
                "height": ROW_PIXELS,
            },
        )
    )
    margin = {"l": 8, "r": 8, "t": 8, "b": 8}
    height = HEAD_PIXELS + ROW_PIXELS * len(rows) + 24
    return drawn.update_layout(template=template(scheme), height=height, margin=margin)


def _written(cell: object, form: str) -> str:
    if cell is None:
        return ""
    return f"{cell:{form}}" if isinstance(cell, float) else escape(str(cell))
