"""What policies spend: GPU-hours by model and GPU type (Sia figure 6), decision time (figure 9)."""

from __future__ import annotations

from collections.abc import Mapping

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from frontend.figures.simulation import NO_RUN
from frontend.formatting import number, plural
from maat.api.simulation_answers import DrawnRun
from maat.colours import SERIES, gpu_colour, gpu_order
from maat.figures.base import LEGEND_ABOVE, empty_figure, figure, name_runs
from maat.figures.texts import escape
from maat.figures.theme import palette, template

MODELS_PER_ROW = 3
BAR_HEIGHT, GAP, ABOVE, BELOW = (
    26,
    64,
    64,
    56,
)  # pixels: of a run, between two rows, around all of them
_TICKS = [step * 10.0**power for power in range(-3, 7) for step in (1, 2, 5)]


def model_hours_figure(runs: Mapping[str, DrawnRun], *, scheme: str | None) -> go.Figure:
    """One panel per model: run x mean GPU-hours per job of the model, stacked by GPU type.

    Each panel has its own scale, for models differ by 100 times; the runs are named once a row.
    """
    hours = {name: _per_job(run) for name, run in runs.items()}
    models = sorted({model for of_run in hours.values() for model in of_run})
    if not models:
        return empty_figure(scheme, "No GPU-hours yet", NO_RUN, height=240)
    columns = min(len(models), MODELS_PER_ROW)
    rows = -(-len(models) // columns)
    panels = rows * (BAR_HEIGHT * len(runs) + GAP) - GAP
    counts = [
        max(
            run["gpu_hours_by_model"][model]["jobs"]
            for run in runs.values()
            if model in run["gpu_hours_by_model"]
        )
        for model in models
    ]
    titles = [
        f"{escape(model)} ({plural(count, 'job')})"
        for model, count in zip(models, counts, strict=True)
    ]
    drawn = make_subplots(
        rows=rows,
        cols=columns,
        shared_yaxes=True,
        subplot_titles=titles,
        horizontal_spacing=0.03,
        vertical_spacing=min(GAP / panels, 1.0),
    )
    named: set[str] = set()
    for index, model in enumerate(models):
        at = {"row": index // columns + 1, "col": index % columns + 1}
        for trace in _stack(hours, model, named):
            drawn.add_trace(trace, **at)
        if index + columns >= len(models):
            drawn.update_xaxes(title_text="GPU-hours per job", **at)
    drawn.update_yaxes(title_text="Run", col=1)
    drawn.update_layout(
        template=template(scheme),
        height=panels + ABOVE + BELOW,
        uirevision="keep",
        hovermode="y unified",
    )
    drawn.update_layout(
        barmode="stack", bargap=0.35, showlegend=True, margin={"t": ABOVE, "b": BELOW}
    )
    drawn.update_layout(legend={"y": 1, "yref": "container", "yanchor": "top"})
    drawn.update_xaxes(showgrid=True, gridcolor=palette(scheme).line, nticks=6, rangemode="tozero")
    drawn.update_yaxes(autorange="reversed", showgrid=False)
    drawn.update_annotations(font={"size": 12, "color": palette(scheme).text})
    return drawn


def _per_job(run: DrawnRun) -> dict[str, dict[str, float]]:
    return {
        model: {kind: value / max(hours["jobs"], 1) for kind, value in hours["by_type"].items()}
        for model, hours in run["gpu_hours_by_model"].items()
    }


def _stack(
    hours: Mapping[str, Mapping[str, Mapping[str, float]]], model: str, named: set[str]
) -> list[go.Bar]:
    """One bar trace per GPU type; `named` collects the types that the legend has."""
    of_runs = {name: of_run.get(model, {}) for name, of_run in hours.items()}
    traces = []
    for kind in gpu_order(kind for of_model in of_runs.values() for kind in of_model):
        traces.append(
            go.Bar(
                name=escape(kind),
                legendgroup=escape(kind),
                showlegend=kind not in named,
                y=[escape(name) for name in of_runs],
                x=[of_model.get(kind, 0.0) for of_model in of_runs.values()],
                orientation="h",
                marker={"color": gpu_colour(kind)},
                hovertemplate="%{x:.3g} GPU-hours per job on " + escape(kind) + "<extra></extra>",
            )
        )
        named.add(kind)
    return traces


def decision_time_figure(
    runs: Mapping[str, DrawnRun], *, scheme: str | None, height: int = 300
) -> go.Figure:
    """Decision time per round (milliseconds, logarithmic) x run.

    A bar shows the median with its quartiles, a tick the 95th percentile.
    """
    times = {name: run["policy_seconds"] for name, run in runs.items() if run["policy_seconds"]}
    if not times:
        return empty_figure(scheme, "No decision times yet", NO_RUN, height=height)
    drawn = figure(scheme, x="Decision time per round (ms)", y="Run", height=height)
    ink = palette(scheme).text
    for index, (name, seconds) in enumerate(times.items()):
        ms = {part: 1000 * seconds[part] for part in ("p25", "median", "p75", "p95")}
        hover = (
            f"{escape(name)}: median {number(ms['median'])} ms, "
            f"quartiles {number(ms['p25'])} to {number(ms['p75'])} ms,<br>"
            f"95th percentile {number(ms['p95'])} ms, "
            f"over {plural(int(seconds['rounds']), 'round')}<extra></extra>"
        )
        colour = SERIES[index % len(SERIES)]
        drawn.add_trace(
            go.Scatter(
                name="median and quartiles",
                x=[ms["median"]],
                y=[escape(name)],
                mode="markers",
                marker={"size": 10, "color": colour},
                error_x={**_quartiles(ms), "color": colour, "thickness": 2, "width": 6},
                hovertemplate=hover,
                showlegend=index == 0,
            )
        )
        drawn.add_trace(
            go.Scatter(
                name="95th percentile",
                x=[ms["p95"]],
                y=[escape(name)],
                mode="markers",
                marker={"size": 14, "symbol": "line-ns", "line": {"width": 2, "color": ink}},
                hovertemplate=hover,
                showlegend=index == 0,
            )
        )
    drawn.update_xaxes(
        type="log",
        tickvals=_TICKS,
        ticktext=[f"{tick:g}" for tick in _TICKS],
        showgrid=True,
        gridcolor=palette(scheme).line,
    )
    drawn.update_yaxes(autorange="reversed", showgrid=False, type="category")
    name_runs(drawn, times)
    drawn.update_layout(showlegend=True, hovermode="closest", margin={"t": LEGEND_ABOVE})
    return drawn


def _quartiles(ms: Mapping[str, float]) -> dict[str, object]:
    """The error bar of a median from quartile to quartile."""
    return {
        "type": "data",
        "symmetric": False,
        "array": [ms["p75"] - ms["median"]],
        "arrayminus": [ms["median"] - ms["p25"]],
    }
