"""A job's measured step times beside those of the fitted model."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from frontend.figures.links import leads_to, part_address
from frontend.formatting import count, number, plural
from maat.api.attempts import StepSampleOut
from maat.api.beliefs import CurveOut, FitOut
from maat.colours import DASHES, gpu_colour, gpu_order
from maat.figures.base import LEGEND_ABOVE, empty_figure, figure
from maat.figures.texts import escape

X = "Batch size per GPU (samples)"
Y = "Step time without accumulation (s)"


def step_times_figure(
    samples: Sequence[StepSampleOut],
    fits: Sequence[FitOut],
    *,
    scheme: str | None,
    height: int = 340,
) -> go.Figure:
    """Return a point per measured configuration, with its spread, and a line per fitted curve.

    Colours are GPU types, dashes numbers of replicas.
    """
    if not samples:
        return empty_figure(
            scheme,
            "No step was measured yet",
            "An adaptive script reports its step times every 30 s.",
            height=height,
        )
    drawn = figure(scheme, x=X, y=Y, height=height)
    replicas = sorted({one["replica_count"] for one in samples})
    dashes = {many: DASHES[index % len(DASHES)] for index, many in enumerate(replicas)}
    for kind in gpu_order(one["gpu_type"] for one in samples):
        mine = [one for one in samples if one["gpu_type"] == kind]
        drawn.add_trace(_points(kind, mine))
        for fit in fits:
            if fit["gpu_type"] == kind:
                for curve in fit["curves"]:
                    drawn.add_trace(_line(kind, curve, dashes.get(curve["replica_count"], "solid")))
    drawn.update_xaxes(rangemode="tozero")
    drawn.update_yaxes(rangemode="tozero")
    drawn.update_layout(showlegend=True, margin={"t": LEGEND_ABOVE})
    return drawn


def _points(kind: str, samples: Sequence[StepSampleOut]) -> go.Scatter:
    ordered = sorted(samples, key=lambda one: (one["per_gpu_batch_size"], one["replica_count"]))
    points = go.Scatter(
        name=f"{escape(kind)}, measured",
        x=[one["per_gpu_batch_size"] for one in ordered],
        y=[_one_pass(one, one["step_seconds"]) for one in ordered],
        error_y={
            "type": "data",
            "array": [one["step_deviation"] / (one["accumulation_steps"] + 1) for one in ordered],
            "thickness": 1,
            "width": 3,
        },
        text=[_words(one) for one in ordered],
        mode="markers",
        marker={"color": gpu_colour(kind), "size": 9},
        hovertemplate="%{text}<extra></extra>",
    )
    return leads_to(points, [part_address(row_id(one)) for one in ordered])


def row_id(one: StepSampleOut) -> str:
    """The id of a configuration's row in the page's table; its point leads there."""
    names = ("gpu_type", "replica_count", "node_count", "per_gpu_batch_size", "accumulation_steps")
    return "-".join(["sample", *(str(one[name]) for name in names)])  # type: ignore[literal-required]


def _line(kind: str, curve: CurveOut, dash: str) -> go.Scatter:
    shape = plural(curve["replica_count"], "GPU")
    if curve["node_count"] > 1:
        shape += f" on {plural(curve['node_count'], 'node')}"
    return go.Scatter(
        name=f"{escape(kind)}, fitted: {shape}",
        x=[point["per_gpu_batch_size"] for point in curve["points"]],
        y=[point["step_seconds"] for point in curve["points"]],
        mode="lines",
        line={"color": gpu_colour(kind), "width": 2, "dash": dash},
        hovertemplate="%{y:.3g} s at %{x} samples<extra>%{fullData.name}</extra>",
    )


def _one_pass(one: StepSampleOut, seconds: float) -> float:
    """Return what the step would take without its further passes."""
    sync = one["sync_seconds"]
    return (seconds - sync) / (one["accumulation_steps"] + 1) + sync


def _words(one: StepSampleOut) -> str:
    return (
        f"{plural(one['replica_count'], 'GPU')} of {escape(one['gpu_type'])} on "
        f"{plural(one['node_count'], 'node')}, {count(one['per_gpu_batch_size'])} samples each: "
        f"{number(one['step_seconds'])} ± {number(one['step_deviation'])} s "
        f"over {plural(one['count'], 'step')}"
    )
