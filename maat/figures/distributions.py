"""Cumulative distributions as step lines."""

from __future__ import annotations

from collections.abc import Mapping

import plotly.graph_objects as go

from maat.figures.axes import log_axis, titled_figure
from maat.figures.base import LEGEND_ABOVE, empty_figure, step_line
from maat.figures.data import Distribution
from maat.figures.marks import mark
from maat.figures.texts import escape

FEW = 30  # of what is counted: a curve of fewer would look too exact


def cdf(
    lines: Mapping[str, Distribution],
    *,
    x: str,
    of: str = "jobs",
    log_x: bool = False,
    scheme: str | None = None,
    height: int | None = None,
    nothing: str = "There is nothing to draw.",
) -> go.Figure:
    """Return step lines: value x share at or below it, one line for each distribution.

    Lines of fewer than FEW values have a mark at each. A line ends below 1 if some values are not
    known.

    Args:
        lines: Distributions by their names; those without a value are left out.
        x: Title of the axis of values, with its unit.
        of: What is counted, in the plural.
        log_x: Whether the axis of values is logarithmic.
        nothing: What an empty figure says.

    >>> drawn = cdf({"sia": Distribution.of([1.0, 3.0, None])}, x="JCT (hours)")
    >>> list(drawn.data[0].x), [round(share, 2) for share in drawn.data[0].y]
    ([1.0, 1.0, 3.0], [0.0, 0.33, 0.67])
    """
    known = {name: line for name, line in lines.items() if len(line.values)}
    if not known:
        return empty_figure(scheme, nothing, height=height)
    drawn = titled_figure(scheme, x=x, y=f"Share of {of}", height=height)
    for index, (name, line) in enumerate(known.items()):
        drawn.add_trace(_line(name, line, index, of=of))
    drawn.update_yaxes(range=[0, 1.02], tickformat=".0%")
    ends = [value for line in known.values() for value in (line.values[0], line.values[-1])]
    drawn.update_xaxes(**(log_axis(ends) if log_x else {"rangemode": "tozero"}))
    return drawn.update_layout(showlegend=True, hovermode="closest", margin={"t": LEGEND_ABOVE})


def _line(name: str, line: Distribution, index: int, *, of: str) -> go.Scatter:
    look = mark(index)
    trace = step_line(
        name,
        [line.values[0], *line.values],
        [0.0, *line.shares],
        colour=look.colour,
        dash=look.dash,
        hovertemplate=(
            f"{escape(name)}: %{{y:.0%}} of {line.total} {of} at or below %{{x:.3g}}<extra></extra>"
        ),
    )
    if line.known < FEW:
        trace.update(mode="lines+markers", marker={"size": 5, "color": look.colour})
    return trace
