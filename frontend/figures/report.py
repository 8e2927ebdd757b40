"""The five figures of a report for managers, from the rows of its document.

They show the same rows as its PDF: the first ones and the others together; the tables hold all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import plotly.graph_objects as go

from frontend.formatting import duration, number, percent
from maat.api.report_rows import drawn_rows
from maat.api.reports import Cell, Chart, FigureOut
from maat.colours import SERIES, gpu_colour
from maat.figures.base import LEGEND_ABOVE, empty_figure, figure, rule
from maat.figures.texts import escape
from maat.figures.theme import palette

ROW_PIXELS, FRAME_PIXELS = 44, 96
NAME_CHARACTERS = 18
WHY_NOT = "The answer above says why."


def report_figure(of: FigureOut, *, scheme: str | None) -> go.Figure:
    """Draw a figure of a report; its axes say the units."""
    if not of["rows"]:
        return empty_figure(scheme, "Nothing to draw", WHY_NOT, height=160)
    return _DRAW[of["chart"]](of, scheme)


def _column(of: FigureOut, key: str) -> int:
    return next(i for i, column in enumerate(of["columns"]) if column["key"] == key)


def left_out(of: FigureOut) -> int:
    """Return how many rows the figure does not draw, where they cannot be summed up."""
    keys = {"shares-and-rho": ("median", "p90"), "waits": ("median", "p90")}.get(of["chart"])
    return 0 if keys is None else drawn_rows(of, keys)[1]


def _short(name: Cell) -> str:
    text = str(name)
    return escape(text if len(text) <= NAME_CHARACTERS else f"{text[: NAME_CHARACTERS - 1]}…")


def _bars(
    of: FigureOut,
    scheme: str | None,
    keys: Sequence[str],
    *,
    x: str,
    say: Callable[[float | None], str],
    scale: float = 1.0,
) -> go.Figure:
    """Draw one group of horizontal bars for each row, each with its value at its end."""
    rows, _ = drawn_rows(of, keys)
    if not rows:
        return empty_figure(scheme, "Nothing to draw", WHY_NOT, height=160)
    drawn = figure(scheme, x=x, y="", height=FRAME_PIXELS + ROW_PIXELS * len(rows))
    names = [_short(row[0]) for row in rows]
    for key, colour in zip(keys, SERIES, strict=False):
        place = _column(of, key)
        values = [_number(row[place]) for row in rows]
        drawn.add_trace(
            go.Bar(
                name=of["columns"][place]["label"],
                y=list(range(len(rows))),
                x=[None if value is None else value / scale for value in values],
                text=[say(value) for value in values],
                textposition="outside",
                cliponaxis=False,
                orientation="h",
                marker={"color": colour},
                hovertemplate="%{text}<extra>" + of["columns"][place]["label"] + "</extra>",
            )
        )
    drawn.update_yaxes(
        tickvals=list(range(len(rows))), ticktext=names, autorange="reversed", showgrid=False
    )
    drawn.update_xaxes(
        showgrid=True, gridcolor=palette(scheme).line, rangemode="tozero", nticks=5, tickangle=0
    )
    drawn.update_layout(
        barmode="group",
        hovermode="closest",
        showlegend=len(keys) > 1,
        margin={
            "l": max(64, 28 + 7 * max(map(len, names))),
            "t": LEGEND_ABOVE if len(keys) > 1 else 16,
            "r": 76,
        },
    )
    return drawn


def _number(cell: Cell) -> float | None:
    return float(cell) if isinstance(cell, int | float) else None


def _fair(of: FigureOut, scheme: str | None) -> go.Figure:
    drawn = _bars(of, scheme, ("median", "p90"), x="rho (1 is fair)", say=number)
    if drawn.data:
        rule(drawn, scheme, x=1.0, text="")
    return drawn


def shares_figure(of: FigureOut, *, scheme: str | None) -> go.Figure:
    """Draw what tenants deserved of the GPU time, and what they got."""
    return _bars(
        of, scheme, ("deserved", "actual"), x="Share of GPU time (%)", say=percent, scale=0.01
    )


def _hours(of: FigureOut, scheme: str | None) -> go.Figure:
    """Draw stacked bars over time: GPU-hours useful, held without use, idle."""
    drawn = figure(scheme, x="Cluster time (UTC)", y="GPU-hours", height=300)
    colours = palette(scheme)
    shades = {"useful": SERIES[0], "overhead": SERIES[4], "idle": colours.drained}
    patterns = {"useful": "", "overhead": "/", "idle": ""}
    when = [escape(str(row[0])) for row in of["rows"]]
    for key, colour in shades.items():
        place = _column(of, key)
        label = of["columns"][place]["label"]
        drawn.add_trace(
            go.Bar(
                name=label,
                x=when,
                y=[_number(row[place]) for row in of["rows"]],
                marker={"color": colour, "pattern": {"shape": patterns[key], "size": 4}},
                hovertemplate="%{y:,.0f} GPU-hours<extra>" + label + "</extra>",
            )
        )
    drawn.update_xaxes(type="category", nticks=12)
    drawn.update_layout(barmode="stack", showlegend=True, margin={"t": LEGEND_ABOVE})
    return drawn


def _waits(of: FigureOut, scheme: str | None) -> go.Figure:
    keys = ("median", "p90")
    places = [_column(of, key) for key in keys]
    values = [_number(row[place]) or 0.0 for row in drawn_rows(of, keys)[0] for place in places]
    highest = max(values, default=0.0)
    scale, unit = (
        (3600.0, "h") if highest >= 7200 else (60.0, "min") if highest >= 120 else (1, "s")
    )
    return _bars(of, scheme, keys, x=f"Wait ({unit})", say=duration, scale=scale)


def _costs(of: FigureOut, scheme: str | None) -> go.Figure:
    place = _column(of, "cost")
    if any(row[place] is not None for row in of["rows"]):
        unit = of["columns"][place]["unit"]
        return _bars(of, scheme, ("cost",), x=f"Cost ({unit})" if unit else "Cost", say=number)
    return _bars(of, scheme, ("held",), x="GPU-hours allocated", say=number)


def _values(of: FigureOut, scheme: str | None) -> go.Figure:
    drawn = _bars(
        of, scheme, ("value",), x="Worth of one more GPU (objective per round)", say=number
    )
    if drawn.data:
        types = [str(row[0]) for row in drawn_rows(of, ("value",))[0]]
        drawn.data[0].marker.color = [gpu_colour(name) for name in types]
    return drawn


_DRAW: dict[Chart, Callable[[FigureOut, str | None], go.Figure]] = {
    "shares-and-rho": _fair,
    "hours": _hours,
    "waits": _waits,
    "costs": _costs,
    "values": _values,
}
