"""The runs of a simulation over time: GPUs in use, efficiency, nodes; waits; jobs (Pollux 5, 6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, TypeAlias

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from frontend.figures.links import leads_to, run_address, simulated_job_address, zooms
from frontend.figures.simulation import NO_RUN, cdf_of_runs, distribution
from frontend.others import told_job
from maat.api.simulation_answers import DrawnRun, JobSeries
from maat.figures.base import MAX_POINTS, empty_figure, step_line
from maat.figures.data import Series
from maat.figures.marks import mark
from maat.figures.runs import (
    TIME,
    WAITED,
    gpus_in_use,
    mean_efficiency,
    nodes_in_service,
    placement_slowdowns,
)
from maat.figures.texts import escape
from maat.figures.theme import palette, template

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
    drawn = gpus_in_use(
        {
            name: {kind: _hours(points) for kind, points in run["gpus_by_type"].items()}
            for name, run in known.items()
        },
        scheme=scheme,
        height=height,
        nothing="No GPUs in use yet",
        remedy=NOT_KEPT if runs else NO_RUN,
    )
    return _finished(drawn, {} if len(known) == 1 else known)


def efficiency_figure(
    runs: Mapping[str, DrawnRun], *, scheme: str | None, height: int = 300
) -> go.Figure:
    """Time (hours) x mean statistical efficiency of the jobs that train, a line for each run."""
    drawn = mean_efficiency(
        {name: _hours(run["efficiency"]) for name, run in runs.items()},
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
    drawn = nodes_in_service(
        {name: _hours(run["nodes"]) for name, run in known.items()},
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
    return cdf_of_runs(known, runs, x=WAITED, scheme=scheme, height=height)


def slowdowns_figure(
    runs: Mapping[str, DrawnRun], *, scheme: str | None, height: int = 300
) -> go.Figure:
    """CDF: slowdown of a job by its place x share of jobs, one line per run (PAL, equation 1)."""
    slowed = {name: run["placement_slowdown"] for name, run in runs.items()}
    known = {name: line for name, line in slowed.items() if line["points"]}
    drawn = placement_slowdowns(
        {name: distribution(line) for name, line in known.items()},
        scheme=scheme,
        height=height,
        nothing="No slowdowns to show",
        remedy=NOT_KEPT if runs else NO_RUN,
    )
    return _leading(drawn, runs)


def _hours(points: Sequence[Sequence[float | None]]) -> Series:
    return Series([(time or 0.0) / 3600 for time, _ in points], [value for _, value in points])


def _finished(drawn: go.Figure, runs: Mapping[str, DrawnRun]) -> go.Figure:
    """Lead each line to its run; all charts over time show the same span."""
    return zooms(_leading(drawn, runs)) if drawn.data else drawn


def _leading(drawn: go.Figure, runs: Mapping[str, DrawnRun]) -> go.Figure:
    """Lead each line to the run of its name."""
    ids = {escape(name): run["id"] for name, run in runs.items()}
    for trace in drawn.data:
        if trace.name in ids:
            leads_to(trace, [run_address(ids[trace.name])] * len(trace.x))
    return drawn


# ---- jobs


Values: TypeAlias = Callable[[JobSeries], Sequence[float | None]]


@dataclass(frozen=True, slots=True)
class Row:
    """A row of charts of a job: what it shows, and how. `shares`: its values are shares of one."""

    title: str
    form: str
    values: Values
    shares: bool = False


def _by_place(life: JobSeries) -> list[float | None]:
    """Return the slowdown by placement, L x max V (PAL, equation 1); None while the job waits."""
    return [
        None if across is None or own is None else across * own
        for across, own in zip(life["locality"], life["variability"], strict=True)
    ]


ROWS = (
    Row("GPUs held", "{:.0f} GPUs", itemgetter("gpu_count")),
    Row("Batch size", "{:,.0f} samples", itemgetter("total_batch_size")),
    Row("Efficiency", "{:.1%}", itemgetter("efficiency"), shares=True),
)
PLACE = Row("Slowdown", "{:.3g} times as slow by its place", _by_place)


def job_series_figure(
    results: Mapping[str, Result], jobs: Sequence[str], *, scheme: str | None
) -> go.Figure:
    """Rows of a job: GPUs held, batch size (samples), statistical efficiency (Pollux, figure 6).

    A fourth, slowdown by placement (times), if any of them was slowed. Time in hours; the rows of
    each job below each other, one line per run. Gaps are waits, of the batch and efficiency
    restarts too.
    """
    known = {
        name: {job: result["series"][job] for job in jobs if job in result.get("series", {})}
        for name, result in results.items()
    }
    shown = [job for job in jobs if any(job in of_run for of_run in known.values())]
    if not shown:
        remedy = "Choose jobs above. Runs of an earlier version did not keep it: simulate again."
        return empty_figure(scheme, "No jobs over time to show", remedy, height=280)
    rows = (*ROWS, PLACE) if _any_slowed(known) else ROWS
    drawn = make_subplots(
        rows=len(rows) * len(shown),
        cols=1,
        shared_xaxes="all",
        vertical_spacing=min(0.3 / (len(rows) * len(shown)), 0.06),
        subplot_titles=[
            escape(told_job(job)) if row == 0 else "" for job in shown for row in range(len(rows))
        ],
    )
    for place, job in enumerate(shown):
        _draw_job(drawn, job, known, rows, above=place * len(rows))
    drawn.update_layout(
        template=template(scheme),
        height=MARGIN_HEIGHT + ROW_HEIGHT * len(rows) * len(shown),
        showlegend=len(known) > 1,
        uirevision="keep",
        hovermode="closest",
        margin={"t": 64},
        legend={"y": 1, "yref": "container", "yanchor": "top"},
    )
    drawn.update_annotations(font={"size": 12, "color": palette(scheme).muted})
    drawn.update_xaxes(title_text=TIME, row=len(rows) * len(shown), col=1)
    return zooms(drawn)


def _any_slowed(runs: Mapping[str, Mapping[str, JobSeries]]) -> bool:
    """Return whether a place slowed any of these jobs; 1: it did not."""
    lives = (life for of_run in runs.values() for life in of_run.values())
    return any(slowed not in (None, 1) for life in lives for slowed in _by_place(life))


def _draw_job(
    drawn: go.Figure,
    job: str,
    runs: Mapping[str, Mapping[str, JobSeries]],
    rows: Sequence[Row],
    *,
    above: int,
) -> None:
    """Draw the rows of a job below the `above` rows of others; a line for each run that has it."""
    for at, row in enumerate(rows, start=above + 1):
        drawn.update_yaxes(title_text=row.title, rangemode="tozero", row=at, col=1)
        if row.shares:
            drawn.update_yaxes(tickformat=".0%", range=[0, 1.05], row=at, col=1)
    for index, (run, of_run) in enumerate(runs.items()):
        if job not in of_run:
            continue
        for at, row in enumerate(rows, start=above + 1):
            line = _life_line(run, of_run[job], row.values(of_run[job]), row.form, index)
            line.update(showlegend=at == 1, legendgroup=run)
            leads_to(line, [simulated_job_address(job)] * len(line.x))
            drawn.add_trace(line, row=at, col=1)


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
