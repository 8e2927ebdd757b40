"""Figures of a comparison: CDFs of JCT and fairness, GPU-hours by type, contention over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log10
from typing import Any

import plotly.graph_objects as go

from frontend.figures.links import leads_to, run_address, zooms
from frontend.formatting import rho_by
from maat.api.simulation_answers import Distribution, DrawnRun
from maat.colours import DASHES, SERIES, gpu_colour, gpu_order
from maat.figures.base import (
    LEGEND_ABOVE,
    empty_figure,
    figure,
    name_runs,
    rule,
    step_line,
    thinned,
)
from maat.figures.texts import escape
from maat.figures.theme import palette

NO_RUN = "No run of this simulation has finished."
FEW_JOBS = 30
_DECADES = [step * 10.0**power for power in range(-4, 5) for step in (1, 2, 5)]


def _style(index: int) -> tuple[str, str]:
    return SERIES[index % len(SERIES)], DASHES[index % len(DASHES)]


def _cdf_figure(
    lines: Mapping[str, Distribution],
    ids: Mapping[str, str],
    *,
    x: str,
    scheme: str | None,
    height: int,
    log: bool = False,
) -> go.Figure:
    """Step lines: value x share of jobs at or below it.

    Lines of fewer than FEW_JOBS jobs are drawn with points: a curve would look too exact. A line
    ends below 1 if the value of some jobs is unknown. `ids`: the run of each line.
    """
    drawn = figure(scheme, x=x, y="Share of jobs", height=height)
    for index, (name, line) in enumerate(lines.items()):
        points = line["points"]
        colour, dash = _style(index)
        trace = step_line(
            name,
            [points[0][0], *(value for value, _ in points)],
            [0.0, *(share for _, share in points)],
            colour=colour,
            dash=dash,
            hovertemplate=(
                f"{escape(name)}: %{{y:.0%}} of {line['jobs']} jobs "
                "at or below %{x:.3g}<extra></extra>"
            ),
        )
        if line["known"] < FEW_JOBS:
            trace.update(mode="lines+markers", marker={"size": 5, "color": colour})
        drawn.add_trace(leads_to(trace, [run_address(ids[name])] * len(trace.x)))
    drawn.update_yaxes(range=[0, 1.02], tickformat=".0%")
    ends = [
        value for line in lines.values() for value, _ in (line["points"][0], line["points"][-1])
    ]
    drawn.update_xaxes(**(_log_axis(ends) if log else {"rangemode": "tozero"}))
    drawn.update_layout(showlegend=True, hovermode="closest", margin={"t": LEGEND_ABOVE})
    return drawn


def _log_axis(values: Sequence[float]) -> dict[str, Any]:
    """A logarithmic axis; a narrow range with fewer than three of 1, 2, 5 gets even ticks."""
    low, high = min(values), max(values)
    ticks = [tick for tick in _DECADES if low <= tick <= high]
    if len(ticks) < 3:
        low, high = (low, high) if high > low * 1.05 else (low / 1.2, high * 1.2)
        ticks = sorted({float(f"{low * (high / low) ** (step / 4):.3g}") for step in range(5)})
        return {
            "type": "log",
            "tickvals": ticks,
            "ticktext": [f"{tick:g}" for tick in ticks],
            "range": [log10(low) - 0.01, log10(high) + 0.01],
        }
    return {"type": "log", "tickvals": _DECADES, "ticktext": [f"{tick:g}" for tick in _DECADES]}


def jct_figure(runs: Mapping[str, DrawnRun], *, scheme: str | None, height: int = 300) -> go.Figure:
    """CDF: job completion time (hours, logarithmic) x share of jobs, one line per run."""
    hours = {name: run["jct_hours"] for name, run in runs.items() if run["jct_hours"]["points"]}
    if not hours:
        return empty_figure(scheme, "No job completion times yet", NO_RUN, height=height)
    return _cdf_figure(hours, _ids(runs), x="JCT (hours)", scheme=scheme, height=height, log=True)


def fairness_figure(
    runs: Mapping[str, DrawnRun], *, scheme: str | None, height: int = 300
) -> go.Figure:
    """CDF: finish-time fairness rho x share of jobs, one line per run, with the rho = 1 rule.

    Right of the rule a job took longer than alone on its share.
    """
    rho = {name: run["rho"] for name, run in runs.items() if run["rho"]["points"]}
    if not rho:
        title, remedy = no_fairness(runs)
        return empty_figure(scheme, title, remedy, height=height)
    by = next(iter(runs.values()))["fairness_rule"]
    title = f"Finish-time fairness {rho_by(by)}"
    drawn = _cdf_figure(rho, _ids(runs), x=title, scheme=scheme, height=height)
    rule(drawn, scheme, x=1, text="rho = 1")
    return drawn


def _ids(runs: Mapping[str, DrawnRun]) -> dict[str, str]:
    return {name: run["id"] for name, run in runs.items()}


def no_fairness(runs: Mapping[str, DrawnRun]) -> tuple[str, str]:
    """Why no job has a rho by this rule, and what to do."""
    finished = [run for run in runs.values() if run["jct_hours"]["known"]]
    if not finished:
        return "No finish-time fairness yet", NO_RUN
    return (
        f"No {rho_by(finished[0]['fairness_rule'])}",
        "An earlier version did not compute it: simulate again, or choose another rule.",
    )


def gpu_hours_figure(
    runs: Mapping[str, DrawnRun], *, scheme: str | None, height: int = 300
) -> go.Figure:
    """Stacked bars: run x GPU-hours, one band per GPU type."""
    totals = {name: run["gpu_hours_by_type"] for name, run in runs.items()}
    types = gpu_order(gpu_type for hours in totals.values() for gpu_type in hours)
    if not types:
        return empty_figure(scheme, "No GPU-hours yet", NO_RUN, height=height)
    drawn = figure(scheme, x="GPU-hours", y="Run", height=height)
    for gpu_type in types:
        drawn.add_trace(
            go.Bar(
                name=escape(gpu_type),
                y=[escape(name) for name in totals],
                x=[hours.get(gpu_type, 0.0) for hours in totals.values()],
                orientation="h",
                marker={"color": gpu_colour(gpu_type)},
                customdata=[run_address(run["id"]) for run in runs.values()],
                hovertemplate="%{x:,.1f} GPU-hours " + escape(gpu_type) + "<extra></extra>",
            )
        )
    drawn.update_layout(
        barmode="stack",
        bargap=0.35,
        showlegend=True,
        hovermode="y unified",
        margin={"t": LEGEND_ABOVE},
    )
    drawn.update_xaxes(showgrid=True, gridcolor=palette(scheme).line)
    drawn.update_yaxes(autorange="reversed", showgrid=False, title_text="Run")
    name_runs(drawn, totals)
    return drawn


def contention_figure(
    runs: Mapping[str, DrawnRun], *, scheme: str | None, height: int = 300
) -> go.Figure:
    """Step lines: time since the trace's start (hours) x active jobs, one per run."""
    lines = {name: run["contention"] for name, run in runs.items() if run["contention"]}
    if not lines:
        return empty_figure(scheme, "No contention yet", NO_RUN, height=height)
    drawn = figure(scheme, x="Time (hours)", y="Contention (jobs active)", height=height)
    for index, (name, points) in enumerate(lines.items()):
        colour, dash = _style(index)
        x, y = [point[0] / 3600 for point in points], [float(point[1]) for point in points]
        drawn.add_trace(
            step_line(
                name,
                x,
                y,
                colour=colour,
                dash=dash,
                customdata=[run_address(runs[name]["id"])] * len(thinned(x)),
                hovertemplate=f"%{{y}} jobs, {escape(name)}<extra></extra>",
            )
        )
    drawn.update_yaxes(rangemode="tozero")
    drawn.update_layout(showlegend=True, margin={"t": LEGEND_ABOVE})
    return zooms(drawn)
