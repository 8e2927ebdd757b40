"""The figures of the report: what ran where, and what is believed against what is true."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from maat.demo.recording import Job, Recording
from maat.scheduling.arrays import FloatArray
from maat.scheduling.throughput import step_seconds

COLOURS = ("#0072B2", "#D55E00", "#009E73")
_GREY, _LINE = "#8a929c", "#e2e5ea"


def occupancy(recording: Recording) -> go.Figure:
    """Return which job held which GPU when; paler until it trained."""
    figure, slots = go.Figure(), _slots(recording)
    for job, colour in zip(recording.jobs, COLOURS, strict=True):
        for part, opacity in (("starting", 0.35), ("training", 1.0)):
            bars = [bar for bar in _bars(job) if bar[1] == part]
            if bars:
                figure.add_bar(
                    y=[slot for slot, *_ in bars],
                    base=[start for *_, start, _ in bars],
                    x=[end - start for *_, start, end in bars],
                    orientation="h",
                    name=job.name if part == "training" else f"{job.name}, {part}",
                    marker={"color": colour, "opacity": opacity, "line": {"width": 0}},
                    hovertemplate="%{y}, %{base:.0f} to %{x:.0f} s",
                )
    for node, down, up in recording.outages:
        first = slots.index(f"{node} 0")
        figure.add_shape(
            type="rect",
            x0=down,
            x1=up,
            y0=first - 0.5,
            y1=first + recording.gpus_per_node - 0.5,
            fillcolor=_GREY,
            opacity=0.35,
            line_width=0,
        )
        figure.add_annotation(
            x=(down + up) / 2, y=first + 1.5, text=f"{node}<br>is down", showarrow=False
        )
    figure.update_layout(barmode="overlay", bargap=0.15)
    figure.update_yaxes(categoryorder="array", categoryarray=slots, autorange="reversed")
    figure.update_xaxes(title="seconds since the first submission")
    return _styled(figure, height=380)


def fits(recording: Recording) -> go.Figure:
    """Return, by job and GPU type, measured passes, the fitted model and the law of the device."""
    kinds = sorted(set(recording.nodes.values()), reverse=True)
    jobs = recording.jobs
    figure = make_subplots(
        rows=len(kinds),
        cols=len(jobs),
        subplot_titles=[f"{job.name} on {kind}" for kind in kinds for job in jobs],
        vertical_spacing=0.16,
    )
    for row, kind in enumerate(kinds, start=1):
        for column, job in enumerate(jobs, start=1):
            shown = row == column == 1
            for trace in _fit_traces(job, kind, shown=shown):
                figure.add_trace(trace, row=row, col=column)
    figure.update_xaxes(title="samples per GPU and pass", row=len(kinds))
    figure.update_yaxes(title="seconds of a pass", col=1, rangemode="tozero")
    return _styled(figure, height=560)


def noise(recording: Recording) -> go.Figure:
    """Return the measured noise scale of each job over its training."""
    figure = go.Figure()
    for job, colour in zip(recording.jobs, COLOURS, strict=True):
        figure.add_scatter(
            x=[100 * row["progress"] / job.work for row in job.noise],
            y=[max(row["noise_scale"], 1.0) for row in job.noise],
            mode="lines+markers",
            name=job.name,
            line={"color": colour},
        )
    figure.update_xaxes(title="% of the work done", range=[0, 101])
    figure.update_yaxes(title="noise scale, samples", type="log")
    return _styled(figure, height=320)


def believed_pass(job: Job, kind: str, batch: FloatArray) -> FloatArray:
    """Return the seconds of a pass on one GPU by the fitted model, same shape as `batch`."""
    (fit,) = [each for each in job.belief["types"] if each["gpu_type"] == kind]
    parameters = np.array(list(fit["parameters"].values()))
    one = np.ones_like(batch)
    return step_seconds(parameters, batch, node_count=one, replica_count=one)


def _fit_traces(job: Job, kind: str, *, shown: bool) -> Sequence[go.Scatter]:
    fixed, per_sample = job.laws[kind]
    samples = [row for row in job.samples if row["gpu_type"] == kind]
    measured = [row["per_gpu_batch_size"] for row in samples]
    batch = np.linspace(1, max([job.batch_size, *measured]), 60)
    traces = [
        go.Scatter(
            x=batch,
            y=fixed + per_sample * batch,
            name="law of the device",
            line={"color": _GREY, "dash": "dash"},
            showlegend=shown,
        )
    ]
    if any(fit["gpu_type"] == kind for fit in job.belief["types"]):
        traces.append(
            go.Scatter(
                x=batch,
                y=believed_pass(job, kind, batch),
                name="fitted model, one GPU",
                line={"color": COLOURS[0]},
                showlegend=shown,
            )
        )
    passes = [row["accumulation_steps"] + 1 for row in samples]
    traces.append(
        go.Scatter(
            x=measured,
            y=[row["step_seconds"] / n for row, n in zip(samples, passes, strict=True)],
            error_y={
                "array": [row["step_deviation"] / n for row, n in zip(samples, passes, strict=True)]
            },
            text=[f"{row['replica_count']} GPUs, {row['count']} steps" for row in samples],
            mode="markers",
            name="measured (any number of GPUs), with deviation",
            marker={"color": COLOURS[1]},
            showlegend=shown,
        )
    )
    return traces


def _bars(job: Job) -> list[tuple[str, str, float, float]]:
    """Return (slot, starting or training, from, to) of each GPU that the job held."""
    bars = []
    for life in job.lives:
        if life.queued is None:
            continue
        trained = life.ended if life.trained is None else life.trained
        for node, gpus in life.gpus_by_node.items():
            for gpu in gpus:
                bars.append((f"{node} {gpu}", "starting", life.queued, trained))
                if trained < life.ended:
                    bars.append((f"{node} {gpu}", "training", trained, life.ended))
    return bars


def _slots(recording: Recording) -> list[str]:
    return [f"{node} {gpu}" for node in recording.nodes for gpu in range(recording.gpus_per_node)]


def _styled(figure: go.Figure, *, height: int) -> go.Figure:
    figure.update_layout(
        template="plotly_white",
        height=height,
        margin={"l": 90, "r": 20, "t": 40, "b": 50},
        legend={"orientation": "h", "y": 1.12, "yanchor": "bottom"},
        font={"family": "system-ui, sans-serif", "size": 13},
    )
    figure.update_xaxes(gridcolor=_LINE)
    figure.update_yaxes(gridcolor=_LINE)
    return figure
