"""Policies against a baseline: JCT ratios with their confidence intervals."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, floor
from textwrap import wrap
from typing import Any

import plotly.graph_objects as go

from frontend.figures.links import leads_to, part_address
from maat.colours import SERIES
from maat.figures.base import empty_figure, figure, name_runs
from maat.figures.texts import escape
from maat.figures.theme import palette

ROW_HEIGHT, MARGIN_HEIGHT, LINE_HEIGHT = 34, 110, 18
TITLE_CHARACTERS = 32  # of a line below the axis, beside which names stand: a phone shows as many
COLOURS = {"faster": SERIES[2], "slower": SERIES[1]}
MANY_TICKS = 20  # times from end to end, beyond which finer ticks would stand on each other
TICKS = [0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 15, 20, 30, 50]
FEW_TICKS = 2  # times from end to end, below which too few of TICKS would be seen
STEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
SPARSE_TICKS = [step * 10.0**power for power in range(-3, 5) for step in (1, 2, 5)]
SYMBOLS = {"faster": "triangle-left", "slower": "triangle-right", "not told apart": "circle-open"}


def ratio_figure(comparison: Mapping[str, Any], *, scheme: str | None) -> go.Figure:
    """One row per contestant: geometric mean of JCT over the baseline's, with its 95 % interval.

    The axis is logarithmic; 1 is a dotted line.
    """
    paired = [row for row in comparison["paired"] if row["ratio"]["low"] is not None]
    names = [contestant["name"] for contestant in comparison["contestants"]]
    if not paired:
        return empty_figure(
            scheme,
            "Nothing to set against each other yet",
            "It takes two policies that have ended, or several seeds of one trace.",
            height=200,
        )
    title = f"JCT relative to {names[comparison['baseline']]}, geometric mean over jobs"
    lines = wrap(title, TITLE_CHARACTERS, break_on_hyphens=False)
    drawn = figure(
        scheme,
        x="<br>".join(map(escape, lines)),
        y="",
        height=MARGIN_HEIGHT + LINE_HEIGHT * (len(lines) - 1) + ROW_HEIGHT * len(paired),
    )
    drawn.add_vline(x=1, line={"color": palette(scheme).muted, "width": 1, "dash": "dot"})
    for row in paired:
        trace = _interval(row, names[row["contestant"]], palette(scheme).muted)
        drawn.add_trace(leads_to(trace, [part_address(row_id(row["contestant"]))]))
    low = min(row["ratio"]["low"] for row in paired)
    high = max(row["ratio"]["high"] for row in paired)
    ticks = _ticks(max(min(low, 1.0), 1e-9), max(high, 1.0))
    drawn.update_xaxes(type="log", tickvals=ticks, ticktext=[f"{tick:g}" for tick in ticks])
    drawn.update_yaxes(autorange="reversed", automargin=True, showgrid=False)
    name_runs(drawn, [names[row["contestant"]] for row in paired])
    drawn.update_layout(showlegend=False, hovermode="closest", margin={"t": 16})
    return drawn


def _ticks(low: float, high: float) -> list[float]:
    """Return where the axis has a number: 1 is among them, and some four are seen."""
    if high / low >= MANY_TICKS:
        return SPARSE_TICKS
    if high / low >= FEW_TICKS:
        return TICKS
    step = next((each for each in STEPS if (high - low) / each <= 5), STEPS[-1])
    first, last = floor((low - 1) / step), ceil((high - 1) / step)
    return [round(1 + step * place, 3) for place in range(first, last + 1)]


def row_id(contestant: int) -> str:
    """The id of a contestant's row in the table of differences; its ratio leads there."""
    return f"contest-row-{contestant}"


def _interval(row: Mapping[str, Any], name: str, neutral: str) -> go.Scatter:
    ratio = row["ratio"]
    side = (
        "not told apart"
        if ratio["low"] <= 1 <= ratio["high"]
        else "faster"
        if ratio["high"] < 1
        else "slower"
    )
    colour = COLOURS.get(side, neutral)
    spread = {
        "type": "data",
        "symmetric": False,
        "array": [ratio["high"] - ratio["estimate"]],
        "arrayminus": [ratio["estimate"] - ratio["low"]],
        "thickness": 2,
        "color": colour,
    }
    words = (
        f"{escape(name)}: {ratio['estimate']:.3f} [{ratio['low']:.3f}, {ratio['high']:.3f}], "
        f"{row['jobs']} jobs in {row['runs']} runs"
    )
    return go.Scatter(
        x=[ratio["estimate"]],
        y=[escape(name)],
        error_x=spread,
        mode="markers",
        marker={"size": 11, "color": colour, "symbol": SYMBOLS[side]},
        hovertemplate=f"{words}<extra></extra>",
    )
