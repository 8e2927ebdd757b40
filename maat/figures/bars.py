"""Bars: side by side with the ranges of their values, or stacked of parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from maat.figures.axes import log_axis, titled_figure
from maat.figures.base import LEGEND_ABOVE, empty_figure, name_runs
from maat.figures.data import Estimate
from maat.figures.marks import mark
from maat.figures.texts import escape
from maat.figures.theme import palette

NOTHING = "There is nothing to draw."


def grouped_bars(
    groups: Sequence[str],
    series: Mapping[str, Sequence[Estimate]],
    *,
    x: str,
    y: str,
    log_y: bool = False,
    scheme: str | None = None,
    height: int | None = None,
    nothing: str = NOTHING,
) -> go.Figure:
    """Return bars in groups, one bar of each series in a group, with whiskers from low to high.

    Args:
        groups: Names along the x axis.
        series: Estimates of every group, in the order of `groups`, by the name of their series.
        x: Title of the axis of groups.
        y: Title of the axis of values, with its unit.
        log_y: Whether the axis of values is logarithmic; its values are above zero.
        nothing: What an empty figure says.

    >>> drawn = grouped_bars(
    ...     ["Philly", "Helios"],
    ...     {"sia": [Estimate(1.0, 0.5, 2.0), Estimate(3.0)]},
    ...     x="Trace",
    ...     y="Mean JCT (hours)",
    ... )
    >>> drawn.data[0].error_y.array, drawn.data[0].error_y.arrayminus
    ((1.0, 0.0), (0.5, 0.0))
    """
    if not any(bar.value is not None for bars in series.values() for bar in bars):
        return empty_figure(scheme, nothing, height=height)
    drawn = titled_figure(scheme, x=x, y=y, height=height)
    for index, (name, bars) in enumerate(series.items()):
        look = mark(index)
        drawn.add_trace(
            go.Bar(
                name=escape(name),
                x=[escape(group) for group in groups],
                y=[bar.value for bar in bars],
                error_y=whiskers(bars, palette(scheme).muted),
                marker={"color": look.colour, "pattern": {"shape": look.pattern, "size": 6}},
                customdata=[range_text(bar) for bar in bars],
                hovertemplate=f"%{{y:.4g}}%{{customdata}} {escape(name)}<extra></extra>",
            )
        )
    if log_y:
        reached = [value for bars in series.values() for bar in bars for value in bar if value]
        drawn.update_yaxes(**log_axis(reached))
    else:
        drawn.update_yaxes(rangemode="tozero")
    drawn.update_xaxes(type="category")
    return drawn.update_layout(
        barmode="group",
        bargap=0.25,
        showlegend=len(series) > 1,
        hovermode="closest",
        margin={"t": LEGEND_ABOVE},
    )


def stacked_bars(
    rows: Sequence[str],
    parts: Mapping[str, Sequence[float]],
    *,
    x: str,
    y: str,
    colours: Mapping[str, str] | None = None,
    scheme: str | None = None,
    height: int | None = None,
    nothing: str = NOTHING,
) -> go.Figure:
    """Return one horizontal bar for each row, made of its parts.

    Args:
        rows: Names along the y axis, the first one above.
        parts: Values of every row, in the order of `rows`, by the name of the part.
        x: Title of the axis of values, with its unit.
        y: Title of the axis of rows.
        colours: Of the parts, such as those of GPU types; None: those of series, with patterns.
        nothing: What an empty figure says.

    >>> drawn = stacked_bars(["sia"], {"t4": [4.0], "a100": [1.0]}, x="GPU-hours", y="Policy")
    >>> [(bar.name, bar.x[0]) for bar in drawn.data]
    [('t4', 4.0), ('a100', 1.0)]
    """
    if not rows or not parts:
        return empty_figure(scheme, nothing, height=height)
    drawn = titled_figure(scheme, x=x, y=y, height=height)
    for index, (name, values) in enumerate(parts.items()):
        look = mark(index)
        shape = {"color": look.colour, "pattern": {"shape": look.pattern, "size": 6}}
        drawn.add_trace(
            go.Bar(
                name=escape(name),
                y=[escape(row) for row in rows],
                x=list(values),
                orientation="h",
                marker=shape if colours is None else {"color": colours[name]},
                hovertemplate=f"%{{x:,.1f}} {escape(name)}<extra></extra>",
            )
        )
    drawn.update_layout(
        barmode="stack",
        bargap=0.35,
        showlegend=True,
        hovermode="y unified",
        margin={"t": LEGEND_ABOVE},
    )
    drawn.update_xaxes(showgrid=True, gridcolor=palette(scheme).line)
    drawn.update_yaxes(autorange="reversed", showgrid=False)
    name_runs(drawn, rows)
    return drawn


def whiskers(values: Sequence[Estimate], colour: str) -> dict[str, object]:
    """Return the error bars from low to high of each value; none where no range is known."""
    lows = [bar.value if bar.low is None else bar.low for bar in values]
    highs = [bar.value if bar.high is None else bar.high for bar in values]
    return {
        "type": "data",
        "symmetric": False,
        "array": [_apart(bar.value, high) for bar, high in zip(values, highs, strict=True)],
        "arrayminus": [_apart(low, bar.value) for bar, low in zip(values, lows, strict=True)],
        "thickness": 1.2,
        "width": 4,
        "color": colour,
        "visible": any(bar.low is not None or bar.high is not None for bar in values),
    }


def _apart(low: float | None, high: float | None) -> float | None:
    return None if low is None or high is None else high - low


def range_text(of: Estimate) -> str:
    """Return ` [low, high]` of an estimate with a range."""
    return "" if of.low is None or of.high is None else f" [{of.low:.4g}, {of.high:.4g}]"
