"""The figure of a sweep: a figure of merit against the varied setting (Sia figures 7, 10, 11).

A second axis gives one line per value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from frontend.figures.links import leads_to, part_address
from frontend.formatting import number, percent, rho_by
from maat.api.sweeps import AxisOut, RowOut, SweepDetail
from maat.figures.base import empty_figure, rule
from maat.figures.data import Estimate, Place
from maat.figures.lines import lines
from maat.figures.texts import escape

# Figure of a point -> its name for readers, its axis with unit; {rho}: rho with the rule's name.
METRICS: Mapping[str, tuple[str, str]] = {
    "avg_jct_hours": ("Mean JCT", "Mean JCT (hours)"),
    "p99_jct_hours": ("p99 JCT", "p99 JCT (hours)"),
    "makespan_hours": ("Makespan", "Makespan (hours)"),
    "gpu_hours_per_job": ("GPU-hours per job", "GPU-hours per job"),
    "restarts_per_job": ("Restarts per job", "Restarts per job"),
    "contention_mean": ("Contention", "Contention (jobs active)"),
    "avg_jct_hours_large": ("Mean JCT, large jobs", "Mean JCT of large jobs (hours)"),
    "avg_jct_hours_small": ("Mean JCT, small jobs", "Mean JCT of small jobs (hours)"),
    "avg_waiting_hours": ("Waiting in all", "Mean waiting in all (hours)"),
    "restart_gpu_share": ("GPU time in restarts", "Share of GPU time in restarts"),
    "policy_seconds_median": ("Policy time", "Policy time per round, median (s)"),
    "policy_seconds_p95": ("Policy time, p95", "Policy time per round, 95th percentile (s)"),
    "placement_seconds_median": ("Placement time", "Placement time per round, median (s)"),
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
    values = dict(_lines(sweep, rows, METRICS[metric][0]))
    drawn = lines(
        {
            name: [_estimate(row, first["name"], metric) for row in of]
            for name, of in values.items()
        },
        x=axis_title(first),
        y=metric_title(metric, sweep["fairness_rule"]),
        ranges="whiskers",
        log_x=first["logarithmic"],
        places=first["values"],
        scheme=scheme,
        height=height,
    )
    for trace, line in zip(drawn.data, filter(None, values.values()), strict=True):
        trace.text = [_said(row, metric) for row in line]
        leads_to(trace, [part_address(row_id(sweep["rows"].index(row))) for row in line])
    if metric == "unfair_fraction":
        drawn.update_yaxes(tickformat=".0%")
    if metric == "worst_rho":
        rule(drawn, scheme, y=1, text="rho = 1")
    return drawn.update_layout(showlegend=len(sweep["axes"]) > 1)


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


def _estimate(row: RowOut, axis: str, metric: str) -> tuple[Place, Estimate]:
    """Return a setting with the mean over its seeds, a sample deviation each way."""
    mean, deviation = row["mean"][metric], row["spread"][metric]
    several = len(row["seeds"]) > 1
    around = (mean - deviation, mean + deviation) if several else (None, None)
    return row["settings"][axis], Estimate(mean, *around)


def _said(row: RowOut, metric: str) -> str:
    show = percent if metric == "unfair_fraction" else number
    seeds = len(row["seeds"])
    mean = show(row["mean"][metric])
    return (
        f"{mean} ± {show(row['spread'][metric])} over {seeds} seeds"
        if seeds > 1
        else f"{mean}, seed {row['seeds'][0]}"
    )


def metric_title(metric: str, rule_name: str) -> str:
    """Return a figure of merit with its unit and, for fairness, the name of its rule."""
    return METRICS[metric][1].format(rho=rho_by(rule_name))


def axis_title(axis: AxisOut) -> str:
    return escape(axis["title"] + (f" ({axis['unit']})" if axis["unit"] else ""))


def value_text(value: float | int | str) -> str:
    return value if isinstance(value, str) else f"{value:g}"
