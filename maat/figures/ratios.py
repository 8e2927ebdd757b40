"""Ratios to a baseline, each with its interval, on a logarithmic axis around 1."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, floor
from textwrap import wrap

import plotly.graph_objects as go

from maat.colours import SERIES
from maat.figures.bars import NOTHING, whiskers
from maat.figures.base import empty_figure, figure, name_runs
from maat.figures.data import Estimate
from maat.figures.texts import escape
from maat.figures.theme import palette

ROW_HEIGHT, MARGIN_HEIGHT, LINE_HEIGHT = 34, 110, 18
TITLE_CHARACTERS = 32  # of a line below the axis, beside which names stand: a phone shows as many
BELOW, ABOVE = SERIES[2], SERIES[1]
MANY_TICKS = 20  # times from end to end, beyond which finer ticks would stand on each other
TICKS = [0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 15, 20, 30, 50]
FEW_TICKS = 2  # times from end to end, below which too few of TICKS would be seen
STEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
SPARSE_TICKS = [step * 10.0**power for power in range(-3, 5) for step in (1, 2, 5)]


def ratios(
    rows: Mapping[str, Estimate],
    *,
    x: str,
    scheme: str | None = None,
    nothing: str = NOTHING,
) -> go.Figure:
    """Return one row for each ratio with its interval; the line of 1 is dotted.

    A ratio whose interval lies below 1 points left, one above 1 right; another is an open circle.

    Args:
        rows: Ratios with both ends of their intervals, by the name of the row.
        x: Title of the axis: what is divided by what.
        nothing: What an empty figure says.

    >>> drawn = ratios({"sia": Estimate(0.5, 0.4, 0.7)}, x="JCT relative to fifo")
    >>> drawn.data[0].marker.symbol, drawn.layout.xaxis.type
    ('triangle-left', 'log')
    """
    if not rows:
        return empty_figure(scheme, nothing)
    lines = wrap(x, TITLE_CHARACTERS, break_on_hyphens=False)
    drawn = figure(
        scheme,
        x="<br>".join(map(escape, lines)),
        y="",
        height=MARGIN_HEIGHT + LINE_HEIGHT * (len(lines) - 1) + ROW_HEIGHT * len(rows),
    )
    drawn.add_vline(x=1, line={"color": palette(scheme).muted, "width": 1, "dash": "dot"})
    for name, ratio in rows.items():
        drawn.add_trace(_interval(name, ratio, palette(scheme).muted))
    reached = [value for ratio in rows.values() for value in ratio if value is not None]
    ticks = _ticks(max(min(*reached, 1.0), 1e-9), max(*reached, 1.0))
    drawn.update_xaxes(type="log", tickvals=ticks, ticktext=[f"{tick:g}" for tick in ticks])
    drawn.update_yaxes(autorange="reversed", automargin=True, showgrid=False)
    name_runs(drawn, rows)
    return drawn.update_layout(showlegend=False, hovermode="closest", margin={"t": 16})


def _ticks(low: float, high: float) -> list[float]:
    """Return where the axis has a number: 1 is among them, and some four are seen."""
    if high / low >= MANY_TICKS:
        return SPARSE_TICKS
    if high / low >= FEW_TICKS:
        return TICKS
    step = next((each for each in STEPS if (high - low) / each <= 5), STEPS[-1])
    first, last = floor((low - 1) / step), ceil((high - 1) / step)
    return [round(1 + step * place, 3) for place in range(first, last + 1)]


def _interval(name: str, ratio: Estimate, neutral: str) -> go.Scatter:
    if ratio.high is not None and ratio.high < 1:
        colour, symbol = BELOW, "triangle-left"
    elif ratio.low is not None and ratio.low > 1:
        colour, symbol = ABOVE, "triangle-right"
    else:
        colour, symbol = neutral, "circle-open"
    spread = {**whiskers([ratio], colour), "thickness": 2, "width": None}
    words = f"{ratio.value:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]"
    return go.Scatter(
        x=[ratio.value],
        y=[escape(name)],
        error_x=spread,
        mode="markers",
        marker={"size": 11, "color": colour, "symbol": symbol},
        hovertemplate=f"{escape(name)}: {words}<extra></extra>",
    )
