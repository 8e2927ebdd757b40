"""The runs of a simulation over time: GPUs in use, efficiency, nodes; waits; jobs (Pollux 5, 6)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from frontend.figures.links import leads_to, run_address, simulated_job_address, zooms
from frontend.figures.simulation import NO_RUN, cdf_of_runs
from frontend.others import told_job
from maat.api.simulation_answers import DrawnRun, JobSeries
from maat.colours import gpu_colour, gpu_order
from maat.figures.areas import stacked_areas
from maat.figures.base import MAX_POINTS, empty_figure, step_line
from maat.figures.data import Series
from maat.figures.marks import mark
from maat.figures.steps import step_lines
from maat.figures.texts import escape
from maat.figures.theme import palette, template

TIME = "Time (hours)"
NOT_KEPT = (
    "An earlier version did not keep it, or jobs of other tenants take part. "
    "Simulate again to have it kept."
)
ROW_HEIGHT, MARGIN_HEIGHT = 120, 110
Result = Mapping[str, Any]


def gpus_figure(
    runs: Mapping[str, DrawnRun], *, scheme: str | None, height: int = 300
) -> go.Figure:
    """Time (hours) x GPUs in use: of one run an area for each type, of several a line each."""
    known = {name: run for name, run in runs.items() if any(run["gpus_by_type"].values())}
    if len(known) == 1:
        return zooms(_areas(next(iter(known.values())), scheme=scheme, height=height))
    drawn = step_lines(
        {name: _all_types(run["gpus_by_type"]) for name, run in known.items()},
        x=TIME,
        y="GPUs in use",
        scheme=scheme,
        height=height,
        nothing="No GPUs in use yet",
        remedy=NOT_KEPT if runs else NO_RUN,
    )
    return _finished(drawn, known)


def _areas(run: DrawnRun, *, scheme: str | None, height: int) -> go.Figure:
    used = run["gpus_by_type"]
    times = _times(used)
    types = gpu_order(used)
    return stacked_areas(
        {kind: Series([time / 3600 for time in times], _at(used[kind], times)) for kind in types},
        x=TIME,
        y="GPUs in use",
        colours={kind: gpu_colour(kind) for kind in types},
        scheme=scheme,
        height=height,
    )


def _all_types(used: Mapping[str, Sequence[Sequence[float]]]) -> Series:
    times = _times(used)
    columns = [_at(points, times) for points in used.values()]
    return Series(
        [time / 3600 for time in times], [sum(each) for each in zip(*columns, strict=True)]
    )


def _times(used: Mapping[str, Sequence[Sequence[float]]]) -> list[float]:
    return sorted({point[0] for points in used.values() for point in points})


def _at(points: Sequence[Sequence[float]], times: Sequence[float]) -> list[float]:
    """Return what a step function is at these times; 0 before its first point."""
    moments = [point[0] for point in points]
    rows = [bisect_right(moments, time) - 1 for time in times]
    return [points[row][1] if row >= 0 else 0.0 for row in rows]


def efficiency_figure(
    runs: Mapping[str, DrawnRun], *, scheme: str | None, height: int = 300
) -> go.Figure:
    """Time (hours) x mean statistical efficiency of the jobs that train, a line for each run."""
    drawn = step_lines(
        {name: _hours(run["efficiency"]) for name, run in runs.items()},
        x=TIME,
        y="Mean statistical efficiency",
        shares=True,
        scheme=scheme,
        height=height,
        nothing="No efficiency to show",
        remedy=NOT_KEPT if runs else NO_RUN,
    )
    return _finished(drawn, {name: run for name, run in runs.items() if run["efficiency"]})


def nodes_figure(
    runs: Mapping[str, DrawnRun], *, scheme: str | None, height: int = 300
) -> go.Figure:
    """Time (hours) x nodes in service, a line for each run; words where they never change."""
    known = {name: run for name, run in runs.items() if run["nodes"]}
    counts = {count for run in known.values() for _, count in run["nodes"]}
    if len(counts) == 1:
        words = f"All {counts.pop():.0f} nodes were in service throughout."
        return empty_figure(scheme, "The nodes did not change", words, height=height)
    drawn = step_lines(
        {name: _hours(run["nodes"]) for name, run in known.items()},
        x=TIME,
        y="Nodes in service",
        scheme=scheme,
        height=height,
        nothing="No nodes to show",
        remedy=NOT_KEPT if runs else NO_RUN,
    )
    return _finished(drawn, known)


def waits_figure(
    runs: Mapping[str, DrawnRun], *, scheme: str | None, height: int = 300
) -> go.Figure:
    """CDF: all waiting of a job (hours) x share of jobs, one line per run (PAL, figure 12)."""
    waited = {name: run["waited_hours"] for name, run in runs.items()}
    known = {name: line for name, line in waited.items() if line["points"]}
    if not known:
        remedy = NOT_KEPT if runs else NO_RUN
        return empty_figure(scheme, "No waits to show", remedy, height=height)
    return cdf_of_runs(known, runs, x="Waiting in all (hours)", scheme=scheme, height=height)


def _hours(points: Sequence[Sequence[float | None]]) -> Series:
    return Series([(time or 0.0) / 3600 for time, _ in points], [value for _, value in points])


def _finished(drawn: go.Figure, runs: Mapping[str, DrawnRun]) -> go.Figure:
    """Lead each line to its run; all charts over time show the same span."""
    if not drawn.data:
        return drawn
    for trace in drawn.data:
        name = next((name for name in runs if escape(name) == trace.name), None)
        if name is not None:
            leads_to(trace, [run_address(runs[name]["id"])] * len(trace.x))
    return zooms(drawn)


# ---- jobs


ROWS: Sequence[tuple[str, str, Callable[[JobSeries], Sequence[float | None]]]] = (
    ("GPUs held", "{:.0f} GPUs", lambda life: life["gpu_count"]),
    ("Batch size", "{:,.0f} samples", lambda life: life["total_batch_size"]),
    ("Efficiency", "{:.1%}", lambda life: life["efficiency"]),
)


def job_series_figure(
    results: Mapping[str, Result], jobs: Sequence[str], *, scheme: str | None
) -> go.Figure:
    """Rows of a job: GPUs held, batch size (samples), statistical efficiency (Pollux, figure 6).

    Time in hours; the rows of each job below each other, one line per run. Gaps of the
    lower two are waits and restarts.
    """
    known = {
        name: {job: result["series"][job] for job in jobs if job in result.get("series", {})}
        for name, result in results.items()
    }
    shown = [job for job in jobs if any(job in of_run for of_run in known.values())]
    if not shown:
        remedy = "Choose jobs above. Runs of an earlier version did not keep it: simulate again."
        return empty_figure(scheme, "No jobs over time to show", remedy, height=280)
    drawn = make_subplots(
        rows=len(ROWS) * len(shown),
        cols=1,
        shared_xaxes="all",
        vertical_spacing=min(0.3 / (len(ROWS) * len(shown)), 0.06),
        subplot_titles=[
            escape(told_job(job)) if row == 0 else "" for job in shown for row in range(len(ROWS))
        ],
    )
    for place, job in enumerate(shown):
        for index, (run, of_run) in enumerate(known.items()):
            for row, (title, form, values) in enumerate(ROWS):
                at = place * len(ROWS) + row + 1
                drawn.update_yaxes(title_text=title, rangemode="tozero", row=at, col=1)
                if job not in of_run:
                    continue
                line = _life_line(run, of_run[job], values(of_run[job]), form, index)
                line.update(showlegend=place == row == 0, legendgroup=run)
                leads_to(line, [simulated_job_address(job)] * len(line.x))
                drawn.add_trace(line, row=at, col=1)
        drawn.update_yaxes(tickformat=".0%", range=[0, 1.05], row=(place + 1) * len(ROWS), col=1)
    drawn.update_layout(
        template=template(scheme),
        height=MARGIN_HEIGHT + ROW_HEIGHT * len(ROWS) * len(shown),
        showlegend=len(known) > 1,
        uirevision="keep",
        hovermode="closest",
        margin={"t": 64},
        legend={"y": 1, "yref": "container", "yanchor": "top"},
    )
    drawn.update_annotations(font={"size": 12, "color": palette(scheme).muted})
    drawn.update_xaxes(title_text=TIME, row=len(ROWS) * len(shown), col=1)
    return zooms(drawn)


def _life_line(
    run: str, life: JobSeries, values: Sequence[float | None], form: str, index: int
) -> go.Scatter:
    look = mark(index)
    last = values[-1] if len(values) else None
    x = [time / 3600 for time in (*life["time"], life["end"])][:MAX_POINTS]
    y = [*values, last][:MAX_POINTS]
    return step_line(
        run,
        x,
        y,
        colour=look.colour,
        dash=look.dash,
        connectgaps=False,
        text=["" if value is None else form.format(value) for value in y],
        hovertemplate=f"%{{text}}, {escape(run)}<extra></extra>",
    )
