"""Points by their two values, in groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from maat.figures.axes import log_axis, titled_figure
from maat.figures.bars import NOTHING
from maat.figures.base import LEGEND_ABOVE, empty_figure, thinned
from maat.figures.data import Point
from maat.figures.marks import mark
from maat.figures.texts import escape
from maat.figures.theme import palette

SPARSE_BEYOND = 300  # times from end to end of an axis of such a figure, which may be narrow


def scatter(
    groups: Mapping[str, Sequence[Point]],
    *,
    x: str,
    y: str,
    log: bool = False,
    equal: str | None = None,
    scheme: str | None = None,
    height: int | None = None,
    nothing: str = NOTHING,
) -> go.Figure:
    """Return points, one colour and mark for each group; at most 2000 of each are drawn.

    Args:
        groups: Points by the name of their group.
        x: Title of the x axis, with its unit.
        y: Title of the y axis, with its unit.
        log: Whether both axes are logarithmic; all values are above zero.
        equal: Name of the line on which both values are the same; None: there is none.
        nothing: What an empty figure says.

    >>> drawn = scatter({"bert": [Point(1.0, 2.0)]}, x="JCT (hours)", y="Epochs", equal="same")
    >>> [trace.name for trace in drawn.data]
    ['same', 'bert']
    """
    points = [point for group in groups.values() for point in group]
    if not points:
        return empty_figure(scheme, nothing, height=height)
    drawn = titled_figure(scheme, x=x, y=y, height=height)
    low = min(min(point.x, point.y) for point in points) / (1.2 if log else 1)
    high = max(max(point.x, point.y) for point in points) * (1.2 if log else 1)
    if equal is not None:
        drawn.add_trace(_line_of_equals(equal, low, high, palette(scheme).muted))
    for index, (name, group) in enumerate(groups.items()):
        drawn.add_trace(_points(name, group, index))
    if log:
        _scale(drawn, points, (low, high), same=equal is not None)
    return drawn.update_layout(showlegend=True, hovermode="closest", margin={"t": LEGEND_ABOVE})


def _scale(
    drawn: go.Figure, points: Sequence[Point], ends: tuple[float, float], *, same: bool
) -> None:
    """Make both axes logarithmic; those with a line of equals have the same numbers."""
    across = ends if same else [point.x for point in points]
    up = ends if same else [point.y for point in points]
    drawn.update_xaxes(**log_axis(across, sparse_beyond=SPARSE_BEYOND))
    drawn.update_yaxes(**log_axis(up, sparse_beyond=SPARSE_BEYOND))


def _line_of_equals(name: str, low: float, high: float, colour: str) -> go.Scatter:
    return go.Scatter(
        name=escape(name),
        x=[low, high],
        y=[low, high],
        mode="lines",
        line={"color": colour, "width": 1, "dash": "dot"},
        hoverinfo="skip",
    )


def _points(name: str, group: Sequence[Point], index: int) -> go.Scatter:
    kept = [group[i] for i in thinned(group)]
    look = mark(index)
    plain = "%{x:.4g}, %{y:.4g}"
    return go.Scatter(
        name=escape(name),
        x=[point.x for point in kept],
        y=[point.y for point in kept],
        text=[point.text for point in kept],
        mode="markers",
        marker={"size": 8, "opacity": 0.75, "color": look.colour, "symbol": look.symbol},
        hovertemplate=f"{'%{text}' if any(p.text for p in kept) else plain}<extra></extra>",
    )
