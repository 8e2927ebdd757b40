"""Lines over an axis, with the ranges of their values as bands or whiskers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from math import log10
from typing import Literal, TypeAlias

import plotly.graph_objects as go

from maat.figures.axes import log_axis, titled_figure
from maat.figures.bars import NOTHING, range_text, whiskers
from maat.figures.base import LEGEND_ABOVE, empty_figure
from maat.figures.data import Estimate, Place
from maat.figures.marks import Mark, mark
from maat.figures.texts import escape
from maat.figures.theme import translucent

Ranges: TypeAlias = Literal["bands", "whiskers"]
BAND_ALPHA = 0.18
EDGE = 0.05  # room beside the outermost values, as a share of the axis
MOST_NAMED = 8  # places of a logarithmic axis that has its numbers at all of them
MOST_MARKED = 60  # points of a line that has a mark at each


def lines(
    series: Mapping[str, Sequence[tuple[Place, Estimate]]],
    *,
    x: str,
    y: str,
    ranges: Ranges = "bands",
    log_x: bool = False,
    log_y: bool = False,
    steps: bool = False,
    places: Sequence[Place] | None = None,
    scheme: str | None = None,
    height: int | None = None,
    nothing: str = NOTHING,
) -> go.Figure:
    """Return one line for each series, with the range of each value.

    Args:
        series: Places on the x axis with their estimates, by the name of the line; one without any
            is left out. Places that are words keep the order in which they first come.
        x: Title of the axis of places, with its unit.
        y: Title of the axis of values, with its unit.
        ranges: How ranges are drawn. Whiskers of several lines stand beside each other.
        log_x: Whether the axis of places is logarithmic; few places have their numbers.
        log_y: Whether the axis of values is logarithmic.
        steps: Whether a value holds until the next place.
        places: Places of the axis, which has its numbers at them alone; None: those of `series`.
        nothing: What an empty figure says.

    >>> drawn = lines(
    ...     {"sia": [(16, Estimate(2.0, 1.0, 3.0)), (32, Estimate(1.0, 0.5, 2.0))]},
    ...     x="GPUs",
    ...     y="Mean JCT (hours)",
    ... )
    >>> [(trace.name, trace.fill) for trace in drawn.data]
    [('sia', 'toself'), ('sia', None)]
    """
    known = {
        name: [point for point in points if point[1].value is not None]
        for name, points in series.items()
    }
    if not any(known.values()):
        return empty_figure(scheme, nothing, height=height)
    drawn = titled_figure(scheme, x=x, y=y, height=height)
    for index, (name, points) in enumerate(known.items()):
        look = mark(index)
        if not points:
            continue
        if ranges == "bands":
            drawn.add_traces(list(_bands(name, series[name], look, steps=steps)))
        drawn.add_trace(_line(name, points, look, ranges=ranges, steps=steps))
    _scale_places(drawn, known, log=log_x, given=places)
    _scale_values(drawn, known, log=log_y)
    if ranges == "whiskers":
        drawn.update_layout(scattermode="group", scattergap=0.96)
    return drawn.update_layout(
        showlegend=len(known) > 1, hovermode="closest", margin={"t": LEGEND_ABOVE}
    )


def _line(
    name: str,
    points: Sequence[tuple[Place, Estimate]],
    look: Mark,
    *,
    ranges: Ranges,
    steps: bool,
) -> go.Scatter:
    values = [estimate for _, estimate in points]
    marked = len(points) <= MOST_MARKED and not steps
    return go.Scatter(
        name=escape(name),
        legendgroup=escape(name),
        x=[_shown(place) for place, _ in points],
        y=[estimate.value for estimate in values],
        error_y=whiskers(values, look.colour) if ranges == "whiskers" else None,
        mode="lines+markers" if marked else "lines",
        line={
            "color": look.colour,
            "dash": look.dash,
            "width": 2,
            "shape": "hv" if steps else "linear",
        },
        marker={"color": look.colour, "size": 7, "symbol": look.symbol},
        text=[f"{estimate.value:.4g}{range_text(estimate)}" for estimate in values],
        hovertemplate=f"{escape(name)} at %{{x}}: %{{text}}<extra></extra>",
    )


def _bands(
    name: str, points: Sequence[tuple[Place, Estimate]], look: Mark, *, steps: bool
) -> Iterator[go.Scatter]:
    """Yield an area for each stretch of places whose range is known, or a line at a single one."""
    for ranged, stretch in groupby(points, key=lambda point: None not in point[1]):
        places = list(stretch)
        if not ranged:
            continue
        lows = [(_shown(place), estimate.low) for place, estimate in places]
        highs = [(_shown(place), estimate.high) for place, estimate in places]
        if steps:
            lows, highs = _stepped(lows), _stepped(highs)
        around = [*highs, *reversed(lows)]
        yield go.Scatter(
            name=escape(name),
            legendgroup=escape(name),
            showlegend=False,
            x=[place for place, _ in around],
            y=[value for _, value in around],
            mode="lines",
            line={"width": 2 if len(places) == 1 else 0, "color": look.colour},
            fill="toself",
            fillcolor=translucent(look.colour, BAND_ALPHA),
            hoverinfo="skip",
        )


def _stepped(
    points: Sequence[tuple[Place, float | None]],
) -> list[tuple[Place, float | None]]:
    """Return the corners of the steps of an edge: each value holds until the next place."""
    corners = [points[0]]
    for (_, before), after in pairwise(points):
        corners += [(after[0], before), after]
    return corners


def _shown(place: Place) -> Place:
    return escape(place) if isinstance(place, str) else place


def _scale_places(
    drawn: go.Figure,
    series: Mapping[str, Sequence[tuple[Place, Estimate]]],
    *,
    log: bool,
    given: Sequence[Place] | None,
) -> None:
    drawn_at = dict.fromkeys(place for points in series.values() for place, _ in points)
    places = list(drawn_at if given is None else given)
    numbers = sorted(place for place in places if isinstance(place, int | float))
    if any(isinstance(place, str) for place in places):
        order = [escape(str(place)) for place in places]
        drawn.update_xaxes(type="category", categoryorder="array", categoryarray=order)
        return
    if log:
        drawn.update_xaxes(**log_axis(numbers))
    if given is not None or (log and len(numbers) <= MOST_NAMED):
        drawn.update_xaxes(tickvals=numbers, ticktext=[f"{place:g}" for place in numbers])
    if (log or given is not None) and len(set(numbers)) > 1:
        ends = min(numbers), max(numbers)
        low, high = (log10(end) if log else end for end in ends)
        edge = EDGE * (high - low)
        drawn.update_xaxes(range=[low - edge, high + edge])


def _scale_values(
    drawn: go.Figure, series: Mapping[str, Sequence[tuple[Place, Estimate]]], *, log: bool
) -> None:
    if not log:
        drawn.update_yaxes(rangemode="tozero")
        return
    reached = [
        value
        for points in series.values()
        for _, estimate in points
        for value in estimate
        if value is not None and value > 0
    ]
    drawn.update_yaxes(**log_axis(reached))
