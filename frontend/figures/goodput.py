"""Predicted goodput by GPU count, one line per GPU type: the preview of the submit form."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from frontend.formatting import number
from maat.api.models import GoodputPoint, GoodputSeries
from maat.colours import gpu_colour, gpu_order
from maat.figures.base import empty_figure, figure, label_or_legend, thinned, whole_ticks
from maat.figures.texts import escape


def goodput_figure(
    series: Sequence[GoodputSeries],
    *,
    scheme: str | None,
    height: int = 320,
    learns: bool = True,
) -> go.Figure:
    """Lines with points: GPUs x goodput (effective samples/s; samples/s of inference).

    One line per GPU type; the hover says the batch plan.
    """
    lines = {str(line["gpu_type"]): line["points"] for line in series if line["points"]}
    if not lines:
        return empty_figure(
            scheme,
            "No GPU type can run this",
            "Widen the GPU counts or the batch size.",
            height=height,
        )
    drawn = figure(
        scheme, x="GPUs", y=f"Goodput ({'effective ' if learns else ''}samples/s)", height=height
    )
    ends = {}
    for name in gpu_order(lines):
        points = lines[name]
        points = [points[i] for i in thinned(points)]
        drawn.add_trace(
            go.Scatter(
                name=escape(name),
                x=[point["gpu_count"] for point in points],
                y=[point["goodput"] for point in points],
                text=[_plan(name, point) for point in points],
                mode="lines+markers",
                line={"width": 2, "color": gpu_colour(name)},
                marker={"size": 6},
                hovertemplate="%{text}<extra></extra>",
            )
        )
        ends[name] = (points[-1]["gpu_count"], float(points[-1]["goodput"]), gpu_colour(name))
    highest = max(float(point["goodput"]) for points in lines.values() for point in points)
    drawn.update_yaxes(rangemode="tozero")
    most = max(int(point["gpu_count"]) for points in lines.values() for point in points)
    drawn.update_xaxes(**whole_ticks(most))
    label_or_legend(drawn, scheme, ends, span=highest, x=(0, most + 0.5))
    return drawn


def _plan(gpu_type: str, point: GoodputPoint) -> str:
    return (
        f"{escape(gpu_type)}: {number(point['goodput'])} effective samples/s = "
        f"{number(point['throughput'])} samples/s × {point['efficiency'] * 100:.0f} %, "
        f"batch {point['total_batch_size']}, step {number(point['step_seconds'])} s"
    )
