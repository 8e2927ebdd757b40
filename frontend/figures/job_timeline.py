"""One job's life: GPU count and type, then batch size and goodput, on one time axis."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from frontend.figures.base import empty_figure, thinned, whole_ticks
from frontend.figures.texts import escape
from frontend.formatting import plural
from frontend.theme import gpu_colour, gpu_order, palette, template, translucent
from maat.api.job_answers import AllocationSpanOut


def job_timeline_figure(
    spans: Sequence[AllocationSpanOut],
    *,
    now: str,
    submitted_at: str,
    scheme: str | None,
    finished_at: str | None = None,
    height: int = 360,
) -> go.Figure:
    """Two step charts over cluster time: GPUs held, coloured by type, and total batch size.

    The job waits where it holds no GPU.
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
    drawn = make_subplots(
        rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.08, row_heights=[0.6, 0.4]
    )
    kept = [spans[i] for i in thinned(spans, 400)]
    for name in gpu_order(str(span["gpu_type"]) for span in kept):
        drawn.add_trace(_gpu_trace(kept, name, end), row=1, col=1)
    if any(span["total_batch_size"] is not None for span in kept):
        drawn.add_trace(_batch_trace(kept, end, palette(scheme).accent), row=2, col=1)
    drawn.update_layout(
        template=template(scheme),
        height=height,
        showlegend=True,
        uirevision="keep",
        margin={"t": 36},
    )
    drawn.update_xaxes(type="date", range=[submitted_at, end])
    drawn.update_xaxes(title_text="Cluster time", row=2, col=1)
    drawn.update_yaxes(
        title_text="GPUs held",
        rangemode="tozero",
        **whole_ticks(max(span["gpu_count"] for span in kept)),
        row=1,
        col=1,
    )
    drawn.update_yaxes(title_text="Batch size<br>(samples)", rangemode="tozero", row=2, col=1)
    return drawn


def _gpu_trace(spans: Sequence[AllocationSpanOut], name: str, end: str) -> go.Scatter:
    """The GPUs of one type that the job held."""
    x, y, text = _bars(spans, name, end)
    return go.Scatter(
        name=escape(name),
        x=x,
        y=y,
        text=text,
        mode="lines",
        fill="tozeroy",
        line={"shape": "hv", "width": 2, "color": gpu_colour(name)},
        fillcolor=translucent(gpu_colour(name), 0.35),
        hovertemplate="%{text}<extra></extra>",
        connectgaps=False,
    )


def _batch_trace(spans: Sequence[AllocationSpanOut], end: str, colour: str) -> go.Scatter:
    x, y, text = _batches(spans, end)
    return go.Scatter(
        name="total batch size",
        x=x,
        y=y,
        text=text,
        mode="lines",
        line={"shape": "hv", "width": 2, "color": colour},
        hovertemplate="%{text}<extra></extra>",
        showlegend=False,
    )


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _bars(
    spans: Sequence[AllocationSpanOut], name: str, end: str
) -> tuple[list[str | None], list[float | None], list[str]]:
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


def _batches(
    spans: Sequence[AllocationSpanOut], end: str
) -> tuple[list[str | None], list[float | None], list[str]]:
    x: list[str | None] = []
    y: list[float | None] = []
    text: list[str] = []
    for span in spans:
        if span["total_batch_size"] is None:
            continue
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
