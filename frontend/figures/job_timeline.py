"""One job's life on one time axis: what happened, GPUs held, batch size, efficiency."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TypeAlias

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from frontend.figures.job_marks import mark_traces
from frontend.figures.links import cluster_address, zooms
from frontend.formatting import plural
from maat.api.job_answers import AllocationSpanOut, JobEventOut
from maat.colours import gpu_colour, gpu_order
from maat.figures.base import TWO_LINES_BELOW, empty_figure, thinned, whole_ticks
from maat.figures.texts import escape
from maat.figures.theme import palette, template, translucent

Drawn: TypeAlias = tuple[list[str | None], list[float | None], list[str]]
"""What a line is drawn of: times, values, words for the pointer."""


def job_timeline_figure(
    spans: Sequence[AllocationSpanOut],
    *,
    events: Sequence[JobEventOut] = (),
    now: str,
    submitted_at: str,
    scheme: str | None,
    finished_at: str | None = None,
    height: int | None = None,
) -> go.Figure:
    """Marks of what happened to it, above step charts: GPUs by type, batch size, efficiency.

    The last two only where they are known. The job waits where it holds no GPU. Efficiency is the
    mean of a span: what its samples were worth at M0.
    """
    end = finished_at or now
    spans = [
        span for span in spans if _instant(span["to_at"] or end) > _instant(span["from_at"])
    ]  # one without length has no path
    if not spans or _instant(end) <= _instant(submitted_at):
        return empty_figure(
            scheme,
            "This job holds no GPU yet",
            "Its GPU type and count show here from its first round on.",
            height=height,
        )
    kept = [spans[i] for i in thinned(spans, 400)]
    counted = [span for span in kept if span["total_batch_size"] is not None]
    worth = [span for span in kept if efficiency_of(span) is not None]
    marks = list(mark_traces(events, palette(scheme)))
    heights = _heights(marks=bool(marks), counted=bool(counted), worth=bool(worth))
    drawn = make_subplots(
        rows=len(heights), cols=1, shared_xaxes=True, vertical_spacing=0.045, row_heights=heights
    )
    for trace in marks:
        drawn.add_trace(trace, row=1, col=1)
    for name in gpu_order(str(span["gpu_type"]) for span in kept):
        drawn.add_trace(_gpu_trace(kept, name, end), row=2, col=1)
    colour = palette(scheme).accent
    if counted:
        trace = _step_trace("total batch size", _batches(counted, end), counted, colour)
        drawn.add_trace(trace, row=3, col=1)
        drawn.update_yaxes(title_text="Batch size<br>(samples)", rangemode="tozero", row=3, col=1)
    if worth:
        trace = _step_trace("efficiency", _efficiencies(worth, end), worth, colour)
        drawn.add_trace(trace, row=len(heights), col=1)
        shares = {"title_text": "Efficiency", "range": [0, 1.05], "tickformat": ".0%", "nticks": 3}
        drawn.update_yaxes(**shares, row=len(heights), col=1)
    drawn.update_layout(
        template=template(scheme),
        height=height,
        showlegend=True,
        uirevision="keep",
        margin={"t": 52, "b": TWO_LINES_BELOW},
    )
    drawn.update_xaxes(type="date", range=[submitted_at, end])
    drawn.update_xaxes(title_text="Cluster time", row=len(heights), col=1)
    _name_first_axes(drawn, most_gpus=max(span["gpu_count"] for span in kept))
    return zooms(drawn)


def _heights(*, marks: bool, counted: bool, worth: bool) -> list[float]:
    """Of the charts one below the other; without marks their strip is hardly there."""
    rest = [0.26] * counted + [0.22] * worth
    return [0.12 if marks else 0.02, 0.4, *rest]


def _name_first_axes(drawn: go.Figure, *, most_gpus: int) -> None:
    """Of the two charts that each life has."""
    drawn.update_yaxes(
        row=1, col=1, range=[0, 1], showticklabels=False, showgrid=False, zeroline=False
    )
    drawn.update_yaxes(
        title_text="GPUs held", rangemode="tozero", **whole_ticks(most_gpus), row=2, col=1
    )


def _gpu_trace(spans: Sequence[AllocationSpanOut], name: str, end: str) -> go.Scatter:
    """The GPUs of one type that the job held."""
    x, y, text = _bars(spans, name, end)
    return go.Scatter(
        name=escape(name),
        x=x,
        y=y,
        text=text,
        customdata=_rounds([span for span in spans if span["gpu_type"] == name]),
        mode="lines",
        fill="tozeroy",
        line={"shape": "hv", "width": 2, "color": gpu_colour(name)},
        fillcolor=translucent(gpu_colour(name), 0.35),
        hovertemplate="%{text}<extra></extra>",
        connectgaps=False,
    )


def _step_trace(
    name: str, drawn: Drawn, spans: Sequence[AllocationSpanOut], colour: str
) -> go.Scatter:
    """The line through a figure of these spans."""
    x, y, text = drawn
    return go.Scatter(
        name=name,
        x=x,
        y=y,
        text=text,
        customdata=_rounds(spans),
        mode="lines",
        line={"shape": "hv", "width": 2, "color": colour},
        hovertemplate="%{text}<extra></extra>",
        showlegend=False,
    )


def efficiency_of(span: AllocationSpanOut) -> float | None:
    """Return the efficiency of a span, 0-1; None where nothing was counted."""
    processed, effective = span["processed_samples"], span["effective_samples"]
    return None if not processed or effective is None else min(effective / processed, 1.0)


def _efficiencies(spans: Sequence[AllocationSpanOut], end: str) -> Drawn:
    x: list[str | None] = []
    y: list[float | None] = []
    text: list[str] = []
    for span in spans:
        share = efficiency_of(span) or 0.0
        until = span["to_at"] or end
        x += [span["from_at"], until, until]
        y += [share, share, None]
        words = f"efficiency {share:.0%}: the worth of a sample beside one at the first batch size"
        text += [words, words, ""]
    return x, y, text


def _rounds(spans: Sequence[AllocationSpanOut]) -> list[str]:
    """Return for the three points of every span the cluster in the round that began it."""
    return [cluster_address(span["round_number"]) for span in spans for _ in range(3)]


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _bars(spans: Sequence[AllocationSpanOut], name: str, end: str) -> Drawn:
    x: list[str | None] = []
    y: list[float | None] = []
    text: list[str] = []
    for span in spans:
        if span["gpu_type"] != name:
            continue
        until = span["to_at"] or end
        x += [span["from_at"], until, until]
        y += [span["gpu_count"], span["gpu_count"], 0]
        words = (
            f"{span['gpu_count']} × {escape(name)} on {plural(span['node_count'], 'node')}, "
            f"from round {span['round_number']}"
        )
        text += [words, words, ""]
    return x, y, text


def _batches(spans: Sequence[AllocationSpanOut], end: str) -> Drawn:
    x: list[str | None] = []
    y: list[float | None] = []
    text: list[str] = []
    for span in spans:
        until = span["to_at"] or end
        x += [span["from_at"], until, until]
        y += [span["total_batch_size"], span["total_batch_size"], None]
        words = (
            f"{span['total_batch_size']} samples = {plural(span['gpu_count'], 'GPU')}, "
            f"{span['per_gpu_batch_size']} per GPU, "
            f"{plural(span['accumulation_steps'] or 0, 'accumulation step')}"
        )
        text += [words, words, ""]
    return x, y, text
