"""Figures of a comparison: CDFs of JCT and fairness, GPU-hours by type, contention over time."""

from __future__ import annotations

from collections.abc import Mapping

import plotly.graph_objects as go

from frontend.figures.links import leads_to, run_address, zooms
from frontend.formatting import rho_by
from maat.api.simulation_answers import Distribution, DrawnRun
from maat.colours import gpu_colour, gpu_order
from maat.figures import data as figures
from maat.figures.bars import stacked_bars
from maat.figures.base import LEGEND_ABOVE, empty_figure, figure, rule, step_line, thinned
from maat.figures.distributions import cdf
from maat.figures.marks import mark
from maat.figures.texts import escape

NO_RUN = "No run of this simulation has finished."


def _cdf_figure(
    lines: Mapping[str, Distribution],
    ids: Mapping[str, str],
    *,
    x: str,
    scheme: str | None,
    height: int,
    log: bool = False,
) -> go.Figure:
    """Step lines: value x share of jobs at or below it. `ids`: the run of each line."""
    drawn = cdf(
        {name: distribution(line) for name, line in lines.items()},
        x=x,
        log_x=log,
        scheme=scheme,
        height=height,
    )
    for name, trace in zip(lines, drawn.data, strict=True):
        leads_to(trace, [run_address(ids[name])] * len(trace.x))
    return drawn


def cdf_of_runs(
    lines: Mapping[str, Distribution],
    runs: Mapping[str, DrawnRun],
    *,
    x: str,
    scheme: str | None,
    height: int,
) -> go.Figure:
    """CDF: value x share of jobs at or below it, one line per run, which leads to its run."""
    return _cdf_figure(lines, _ids(runs), x=x, scheme=scheme, height=height)


def distribution(of: Distribution) -> figures.Distribution:
    values, shares = zip(*of["points"], strict=True)
    return figures.Distribution(values, shares, of["jobs"], of["known"])


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
    drawn = stacked_bars(
        list(totals),
        {name: [hours.get(name, 0.0) for hours in totals.values()] for name in types},
        x="GPU-hours",
        y="Run",
        colours={name: gpu_colour(name) for name in types},
        scheme=scheme,
        height=height,
    )
    for trace in drawn.data:
        leads_to(trace, [run_address(run["id"]) for run in runs.values()])
        trace.hovertemplate = f"%{{x:,.1f}} GPU-hours {trace.name}<extra></extra>"
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
        look = mark(index)
        x, y = [point[0] / 3600 for point in points], [float(point[1]) for point in points]
        drawn.add_trace(
            step_line(
                name,
                x,
                y,
                colour=look.colour,
                dash=look.dash,
                customdata=[run_address(runs[name]["id"])] * len(thinned(x)),
                hovertemplate=f"%{{y}} jobs, {escape(name)}<extra></extra>",
            )
        )
    drawn.update_yaxes(rangemode="tozero")
    drawn.update_layout(showlegend=True, margin={"t": LEGEND_ABOVE})
    return zooms(drawn)
