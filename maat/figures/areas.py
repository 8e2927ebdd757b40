"""Areas on each other over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from maat.figures.axes import titled_figure
from maat.figures.bars import NOTHING
from maat.figures.base import LEGEND_ABOVE, empty_figure, thinned
from maat.figures.data import Series
from maat.figures.marks import mark
from maat.figures.texts import escape
from maat.figures.theme import translucent

AREA_ALPHA = 0.55


def stacked_areas(
    parts: Mapping[str, Series],
    *,
    x: str,
    y: str,
    colours: Mapping[str, str] | None = None,
    steps: bool = True,
    scheme: str | None = None,
    height: int | None = None,
    nothing: str = NOTHING,
) -> go.Figure:
    """Return one area for each part on the other, the first one below.

    Args:
        parts: Values over the x axis by the name of their part; at most 2000 of each are drawn.
            Parts may have other places than each other: a step holds until the part's next one.
        x: Title of the axis of times or places, with its unit.
        y: Title of the axis of values, with its unit.
        colours: Of the parts, such as those of GPU types; None: those of series, with dashed edges.
        steps: Whether a value holds until the next one.
        nothing: What an empty figure says.

    >>> at = [0.0, 1.0]
    >>> drawn = stacked_areas(
    ...     {"t4": Series(at, [4, 2]), "a100": Series(at, [0, 8])}, x="Time (hours)", y="GPUs held"
    ... )
    >>> [area.stackgroup for area in drawn.data], list(drawn.data[1].y)
    (['all', 'all'], [0, 8])
    """
    given = {name: series for name, series in parts.items() if len(series.at)}
    known = aligned(given) if steps else given
    if not known:
        return empty_figure(scheme, nothing, height=height)
    drawn = titled_figure(scheme, x=x, y=y, height=height)
    for index, (name, series) in enumerate(known.items()):
        look = mark(index)
        colour, dash = (look.colour, look.dash) if colours is None else (colours[name], "solid")
        kept = thinned(series.at)
        drawn.add_trace(
            go.Scatter(
                name=escape(name),
                x=[series.at[i] for i in kept],
                y=[series.values[i] for i in kept],
                mode="lines",
                stackgroup="all",
                stackgaps="infer zero" if steps else "interpolate",
                line={
                    "shape": "hv" if steps else "linear",
                    "width": 1,
                    "color": colour,
                    "dash": dash,
                },
                fillcolor=translucent(colour, AREA_ALPHA),
                hovertemplate=f"%{{y}} {escape(name)}<extra></extra>",
            )
        )
    drawn.update_yaxes(rangemode="tozero")
    return drawn.update_layout(showlegend=True, margin={"t": LEGEND_ABOVE})


def aligned(parts: Mapping[str, Series]) -> Mapping[str, Series]:
    """Return the steps of all parts at the places of any of them; zero before a part begins.

    >>> aligned({"t4": Series([0, 2], [1, 3]), "a100": Series([1], [8])})["a100"]
    Series(at=[0, 1, 2], values=[0, 8, 8])
    """
    if len({tuple(series.at) for series in parts.values()}) <= 1:
        return parts
    places: list[Any] = sorted({place for series in parts.values() for place in series.at})
    return {name: Series(places, _values_at(series, places)) for name, series in parts.items()}


def _values_at(series: Series, places: Sequence[Any]) -> list[float | None]:
    known = dict(zip(series.at, series.values, strict=True))
    values: list[float | None] = []
    for place in places:
        values.append(known.get(place, values[-1] if values else 0))
    return values
