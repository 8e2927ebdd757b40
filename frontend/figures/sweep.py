"""The figure of a sweep: a figure of merit against the varied setting (Sia figures 7, 10, 11).

A second axis gives one line per value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log10

import plotly.graph_objects as go

from frontend.figures.links import leads_to, part_address
from frontend.formatting import number, percent, rho_by
from maat.api.sweeps import AxisOut, RowOut, SweepDetail
from maat.colours import DASHES, SERIES
from maat.figures.base import LEGEND_ABOVE, empty_figure, figure, rule
from maat.figures.texts import escape

EDGE = 0.05  # room beside the outermost values, as a share of the axis

# Figure of a point -> its name for readers, its axis with unit; {rho}: rho with the rule's name.
METRICS: Mapping[str, tuple[str, str]] = {
    "avg_jct_hours": ("Mean JCT", "Mean JCT (hours)"),
    "p99_jct_hours": ("p99 JCT", "p99 JCT (hours)"),
    "makespan_hours": ("Makespan", "Makespan (hours)"),
    "gpu_hours_per_job": ("GPU-hours per job", "GPU-hours per job"),
    "restarts_per_job": ("Restarts per job", "Restarts per job"),
    "contention_mean": ("Contention", "Contention (jobs active)"),
    "unfair_fraction": ("Unfair fraction", "Share of jobs with {rho} > 1"),
    "worst_rho": ("Worst rho", "Largest finish-time fairness {rho}"),
    "unfinished": ("Unfinished", "Jobs not finished"),
    "cannot_run": ("Cannot run", "Jobs that can never run"),
}


def sweep_figure(
    sweep: SweepDetail, metric: str, *, scheme: str | None, height: int = 420
) -> go.Figure:
    """First axis x mean over the seeds of `metric`, one line per value of the second axis.

    Bars are one sample standard deviation each way. A first axis of words (policies, profiling
    modes) has places instead of a scale.
    """
    rows = [row for row in sweep["rows"] if metric in row["mean"]]
    if not rows and sweep["rows"]:
        remedy = (
            "No point has it: no job finished, or the rule of rho is one that an earlier version "
            "did not compute."
        )
        return empty_figure(scheme, f"No {METRICS[metric][0]}", remedy, height=height)
    if not rows:
        return empty_figure(
            scheme,
            "No point has ended yet",
            "It shows as soon as a worker has played one.",
            height=height,
        )
    first = sweep["axes"][0]
    drawn = figure(
        scheme, x=axis_title(first), y=metric_title(metric, sweep["fairness_rule"]), height=height
    )
    seeds = len(sweep["seeds"])
    for index, (name, line) in enumerate(_lines(sweep, rows, METRICS[metric][0])):
        if line:
            trace = _line(name, line, first["name"], metric, index, seeds=seeds)
            ids = [part_address(row_id(sweep["rows"].index(row))) for row in line]
            drawn.add_trace(leads_to(trace, ids))
    _scale(drawn, first)
    drawn.update_yaxes(
        rangemode="tozero", **({"tickformat": ".0%"} if metric == "unfair_fraction" else {})
    )
    if metric == "worst_rho":
        rule(drawn, scheme, y=1, text="rho = 1")
    # Lines stand a little beside each other at every value, so that no bar hides another.
    drawn.update_layout(
        scattermode="group",
        scattergap=0.96,
        showlegend=len(sweep["axes"]) > 1,
        hovermode="closest",
        margin={"t": LEGEND_ABOVE},
    )
    return drawn


def row_id(index: int) -> str:
    """The id of a setting's row in the page's table; a dot leads there."""
    return f"sweep-row-{index}"


def _lines(
    sweep: SweepDetail, rows: Sequence[RowOut], metric_name: str
) -> list[tuple[str, Sequence[RowOut]]]:
    """Return name and rows of each line: one per value of the second axis, if there is one."""
    if len(sweep["axes"]) < 2:
        return [(metric_name, rows)]
    axis = sweep["axes"][1]
    return [
        (
            f"{axis['name']} = {value_text(value)}",
            [row for row in rows if row["settings"][axis["name"]] == value],
        )
        for value in axis["values"]
    ]


def _line(
    name: str, rows: Sequence[RowOut], axis: str, metric: str, index: int, *, seeds: int
) -> go.Scatter:
    colour, dash = SERIES[index % len(SERIES)], DASHES[index % len(DASHES)]
    text = [_said(row, metric) for row in rows]
    bars = {
        "type": "data",
        "array": [row["spread"][metric] for row in rows],
        "thickness": 1.2,
        "width": 4,
        "color": colour,
    }
    return go.Scatter(
        name=escape(name),
        x=[
            escape(value) if isinstance(value, str) else value
            for value in (row["settings"][axis] for row in rows)
        ],
        y=[row["mean"][metric] for row in rows],
        error_y={**bars, "visible": seeds > 1},
        mode="lines+markers",
        line={"color": colour, "dash": dash, "width": 2},
        marker={"color": colour, "size": 7},
        text=text,
        hovertemplate=f"{escape(name)} at %{{x}}: %{{text}}<extra></extra>",
    )


def _said(row: RowOut, metric: str) -> str:
    show = percent if metric == "unfair_fraction" else number
    seeds = len(row["seeds"])
    mean = show(row["mean"][metric])
    return (
        f"{mean} ± {show(row['spread'][metric])} over {seeds} seeds"
        if seeds > 1
        else f"{mean}, seed {row['seeds'][0]}"
    )


def _scale(drawn: go.Figure, axis: AxisOut) -> None:
    """Put ticks at the simulated values, on a linear or, if the axis asks, a logarithmic scale."""
    values = [value for value in axis["values"] if not isinstance(value, str)]
    if len(values) < len(axis["values"]):
        drawn.update_xaxes(
            type="category",
            categoryorder="array",
            categoryarray=[escape(str(value)) for value in axis["values"]],
        )
        return
    kind = "log" if axis["logarithmic"] else "linear"
    drawn.update_xaxes(
        type=kind, tickvals=sorted(values), ticktext=[value_text(v) for v in sorted(values)]
    )
    first, last = (log10(value) if kind == "log" else value for value in (min(values), max(values)))
    if last > first:
        drawn.update_xaxes(range=[first - EDGE * (last - first), last + EDGE * (last - first)])


def metric_title(metric: str, rule_name: str) -> str:
    """Return a figure of merit with its unit and, for fairness, the name of its rule."""
    return METRICS[metric][1].format(rho=rho_by(rule_name))


def axis_title(axis: AxisOut) -> str:
    return escape(axis["title"] + (f" ({axis['unit']})" if axis["unit"] else ""))


def value_text(value: float | int | str) -> str:
    return value if isinstance(value, str) else f"{value:g}"
