"""The price of each GPU type, round by round: what made a type scarce."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from frontend.figures.base import empty_figure, figure, label_or_legend, step_line
from frontend.theme import gpu_colour, gpu_order


def prices_figure(rounds: Sequence[Mapping[str, Any]], *, scheme: str | None, height: int = 240) -> go.Figure:
    """Step lines: round x price (objective per GPU), one per GPU type. `rounds` may come in any order."""
    ordered = sorted((entry for entry in rounds if entry.get("prices")), key=lambda entry: entry["number"])
    types = gpu_order(name for entry in ordered for name in entry["prices"])
    if not types:
        return empty_figure(
            scheme, "No prices yet", "Policies that solve a programme give one price per GPU type and round.", height=height
        )
    drawn = figure(scheme, x="Round", y="Price (objective per GPU)", height=height)
    ends, highest = {}, 0.0
    for name in types:
        values = [entry["prices"].get(name) for entry in ordered]
        drawn.add_trace(
            step_line(
                name,
                [entry["number"] for entry in ordered],
                values,
                colour=gpu_colour(name),
                hovertemplate="%{y:.4g} " + name + "<extra></extra>",
            )
        )
        known = [float(value) for value in values if value is not None]
        ends[name] = (ordered[-1]["number"], known[-1] if known else 0.0, gpu_colour(name))
        highest = max([highest, *known])
    drawn.update_yaxes(rangemode="tozero")
    label_or_legend(drawn, ends, span=max(highest, 1e-9))
    return drawn
