"""Step lines over time: values that hold until they change, with gaps where there are none."""

from __future__ import annotations

from collections.abc import Mapping

import plotly.graph_objects as go

from maat.figures.axes import titled_figure
from maat.figures.bars import NOTHING
from maat.figures.base import LEGEND_ABOVE, empty_figure, step_line
from maat.figures.data import Series
from maat.figures.marks import mark
from maat.figures.texts import escape


def step_lines(
    series: Mapping[str, Series],
    *,
    x: str,
    y: str,
    shares: bool = False,
    scheme: str | None = None,
    height: int | None = None,
    nothing: str = NOTHING,
    remedy: str = "",
) -> go.Figure:
    """Return one step line for each series, from zero up.

    Args:
        series: Values over the x axis by the name of the line, each until the next; None: a gap. At
            most 2000 of each are drawn; a series without any value is left out.
        x: Title of the axis of times, with its unit.
        y: Title of the axis of values, with its unit.
        shares: Whether values are shares of one, shown in percent.
        nothing: What an empty figure says, and below it, as `remedy`, what to do.

    >>> drawn = step_lines(
    ...     {"sia": Series([0.0, 1.0, 2.0], [1.0, None, 0.5])},
    ...     x="Time (hours)",
    ...     y="Efficiency",
    ...     shares=True,
    ... )
    >>> drawn.data[0].line.shape, list(drawn.data[0].y)
    ('hv', [1.0, None, 0.5])
    """
    known = {
        name: line
        for name, line in series.items()
        if any(value is not None for value in line.values)
    }
    if not known:
        return empty_figure(scheme, nothing, remedy, height=height)
    drawn = titled_figure(scheme, x=x, y=y, height=height)
    for index, (name, line) in enumerate(known.items()):
        look = mark(index)
        shown = "%{y:.1%}" if shares else "%{y}"
        trace = step_line(
            name,
            line.at,
            line.values,
            colour=look.colour,
            dash=look.dash,
            connectgaps=False,
            hovertemplate=f"{shown}, {escape(name)}<extra></extra>",
        )
        drawn.add_trace(trace)
    drawn.update_yaxes(
        **({"range": [0, 1.02], "tickformat": ".0%"} if shares else {"rangemode": "tozero"})
    )
    return drawn.update_layout(
        showlegend=len(known) > 1,
        hovermode="x unified" if len(known) == 1 else "closest",
        margin={"t": LEGEND_ABOVE},
    )
