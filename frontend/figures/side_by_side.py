"""Two runs of one trace job by job: their JCTs, and allocations over time (Sia figure 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from frontend.figures.links import leads_to, simulated_job_address, zooms
from frontend.formatting import duration
from frontend.others import told_job
from maat.colours import gpu_colour, gpu_order
from maat.figures.base import (
    MAX_POINTS,
    empty_figure,
    step_line,
    thinned,
    whole_ticks,
)
from maat.figures.data import Point
from maat.figures.scatter import scatter
from maat.figures.texts import escape
from maat.figures.theme import palette, template, translucent

Result = Mapping[str, Any]
ROW_HEIGHT, MARGIN_HEIGHT = 120, 110
POINTS_PER_STRETCH = 3


def paired_figure(
    results: Mapping[str, Result], *, scheme: str | None, height: int = 320
) -> go.Figure:
    """Scatter, both axes logarithmic: JCT (hours) under the first run x under the second.

    One point per job, one colour and mark per model.

    Above the line of equal JCT the first run served the job sooner.
    """
    if len(results) < 2:
        return empty_figure(
            scheme,
            "Two runs are needed",
            "Choose another second run, or simulate several policies.",
            height=height,
        )
    (first, one), (second, other) = list(results.items())[:2]
    pairs = _paired_hours(one, other)
    if not pairs:
        return empty_figure(
            scheme,
            "No job finished in both runs",
            "Choose two runs in which jobs have finished.",
            height=height,
        )
    models = sorted({model for _, model, _, _ in pairs})
    of_model = {name: [pair for pair in pairs if pair[1] == name] for name in models}
    drawn = scatter(
        {name: [_point(pair, (first, second)) for pair in of_model[name]] for name in models},
        x=f"JCT under {escape(first)} (hours)",
        y=f"JCT under {escape(second)} (hours)",
        log=True,
        equal="equal JCT",
        scheme=scheme,
        height=height,
    )
    for name, trace in zip(models, drawn.data[1:], strict=True):
        jobs = [job for job, *_ in of_model[name]]
        leads_to(trace, [simulated_job_address(jobs[i]) for i in thinned(jobs)])
    sooner, later = sum(x < y for *_, x, y in pairs), sum(x > y for *_, x, y in pairs)
    drawn.update_layout(
        meta={"sooner": sooner, "later": later, "jobs": len(pairs)},
    )
    return drawn


def _paired_hours(one: Result, other: Result) -> list[tuple[str, str, float, float]]:
    """Name, model, and JCT in hours of every measured job that finished in both."""
    theirs = {job["name"]: job for job in other["jobs"]}
    measured = (job for job in one["jobs"] if job.get("measured", True))
    pairs = [(job, theirs[job["name"]]) for job in measured if job["name"] in theirs]
    hours = [(a["name"], a["model"], _jct_hours(a), _jct_hours(b)) for a, b in pairs]
    return [(name, model, x, y) for name, model, x, y in hours if x is not None and y is not None]


def _jct_hours(job: Mapping[str, Any]) -> float | None:
    if job["finish"] is None or job["finish"] <= job["submit"]:
        return None
    return float(job["finish"] - job["submit"]) / 3600


def _point(pair: tuple[str, str, float, float], runs: tuple[str, str]) -> Point:
    name, _, x, y = pair
    under = [f"{escape(run)}: {duration(v * 3600)}" for run, v in zip(runs, (x, y), strict=True)]
    return Point(x, y, "<br>".join((escape(told_job(name)), *under)))


def allocations_figure(
    results: Mapping[str, Result], jobs: Sequence[str], *, scheme: str | None
) -> go.Figure:
    """One column per run, one row per job: time (hours) x GPUs held, coloured by GPU type.

    The last row shows the active jobs of the whole cluster. Gaps are times without a GPU. All
    columns share one time axis, the cells of a row one GPU axis.
    """
    rows = len(jobs) + 1
    height = MARGIN_HEIGHT + ROW_HEIGHT * rows
    held = {
        name: {job: result["allocations"].get(job, []) for job in jobs}
        for name, result in results.items()
    }
    if not any(stretches for of_run in held.values() for stretches in of_run.values()):
        return empty_figure(
            scheme,
            "No allocations to show",
            "Choose jobs above that held GPUs in a run that has finished.",
            height=280,
        )
    drawn = make_subplots(
        rows=rows,
        cols=len(results),
        shared_xaxes="all",
        shared_yaxes="rows",
        vertical_spacing=min(0.3 / rows, 0.1),
        horizontal_spacing=0.04,
        subplot_titles=_titles(results, jobs),
    )
    named: set[str] = set()
    for column, (name, result) in enumerate(results.items(), start=1):
        for row, job in enumerate(jobs, start=1):
            for trace in _stretch_traces(held[name][job], named):
                leads_to(trace, [simulated_job_address(job)] * len(trace.x))
                drawn.add_trace(trace, row=row, col=column)
        drawn.add_trace(_active(name, result, scheme), row=rows, col=column)
    return _dressed(drawn, results, held, scheme=scheme, height=height)


def _dressed(
    drawn: go.Figure,
    results: Mapping[str, Result],
    held: Mapping[str, Mapping[str, Any]],
    *,
    scheme: str | None,
    height: int,
) -> go.Figure:
    stretches = [
        stretch for of_run in held.values() for of_job in of_run.values() for stretch in of_job
    ]
    begin, end = min(s["start"] for s in stretches) / 3600, max(s["end"] for s in stretches) / 3600
    most_active = max(
        (point[1] for result in results.values() for point in result["contention"]), default=1
    )
    rows, pad = len(next(iter(held.values()))) + 1, 0.01 * max(end - begin, 1e-3)
    drawn.update_layout(
        template=template(scheme),
        height=height,
        showlegend=True,
        uirevision="keep",
        hovermode="closest",
    )
    drawn.update_layout(margin={"t": 64}, legend={"y": 1, "yref": "container", "yanchor": "top"})
    drawn.update_annotations(font={"size": 12, "color": palette(scheme).muted})
    drawn.update_xaxes(range=[begin - pad, end + pad])
    drawn.update_yaxes(rangemode="tozero")
    for row, job in enumerate(next(iter(held.values())), start=1):
        most = max((s["gpu_count"] for of_run in held.values() for s in of_run[job]), default=1)
        drawn.update_yaxes(range=[0, most * 1.15], **whole_ticks(most), row=row)
        drawn.update_yaxes(title_text="GPUs held", row=row, col=1)
    drawn.update_yaxes(range=[0, most_active * 1.15], row=rows)
    drawn.update_yaxes(title_text="Active jobs", row=rows, col=1)
    drawn.update_xaxes(title_text="Time (hours)", row=rows)
    return zooms(drawn)


def _titles(results: Mapping[str, Result], jobs: Sequence[str]) -> list[str]:
    told = {name: {job["name"]: job for job in result["jobs"]} for name, result in results.items()}
    cells = [_title(name, told[name].get(job), job) for job in jobs for name in results]
    return [*cells, *(f"{escape(name)}: the whole cluster" for name in results)]


def _title(run: str, told: Mapping[str, Any] | None, job: str) -> str:
    ended = (
        ""
        if told is None
        else " · not finished"
        if told["finish"] is None
        else f" · JCT {duration(told['finish'] - told['submit'])}"
    )
    return f"{escape(run)}: {escape(told_job(job))}{ended}"


def _stretch_traces(stretches: Sequence[Mapping[str, Any]], named: set[str]) -> list[go.Scatter]:
    """For each GPU type a step line with gaps, and under it its area.

    `named` collects the types that the legend has.
    """
    kept = [stretches[i] for i in thinned(stretches, MAX_POINTS // POINTS_PER_STRETCH)]
    traces = []
    for kind in gpu_order(stretch["gpu_type"] for stretch in kept):
        of_kind = [stretch for stretch in kept if stretch["gpu_type"] == kind]
        traces += [_line(of_kind, kind, shown=kind not in named), _area(of_kind, kind)]
        named.add(kind)
    return traces


def _line(stretches: Sequence[Mapping[str, Any]], kind: str, *, shown: bool) -> go.Scatter:
    return go.Scatter(
        name=escape(kind),
        legendgroup=escape(kind),
        showlegend=shown,
        x=[at for s in stretches for at in (s["start"] / 3600, s["end"] / 3600, None)],
        y=[count for s in stretches for count in (s["gpu_count"], s["gpu_count"], None)],
        text=[words for s in stretches for words in (_words(s), _words(s), "")],
        mode="lines",
        connectgaps=False,
        line={"shape": "hv", "width": 2, "color": gpu_colour(kind)},
        hovertemplate="%{text}<extra></extra>",
    )


def _area(stretches: Sequence[Mapping[str, Any]], kind: str) -> go.Scatter:
    """The area under the line of a type, at zero in its gaps: Plotly would fill across gaps."""
    return go.Scatter(
        name=escape(kind),
        legendgroup=escape(kind),
        showlegend=False,
        x=[at for s in stretches for at in (s["start"] / 3600, s["end"] / 3600, s["end"] / 3600)],
        y=[count for s in stretches for count in (s["gpu_count"], s["gpu_count"], 0)],
        mode="lines",
        fill="tozeroy",
        line={"shape": "hv", "width": 0, "color": gpu_colour(kind)},
        fillcolor=translucent(gpu_colour(kind), 0.35),
        hoverinfo="skip",
    )


def _words(stretch: Mapping[str, Any]) -> str:
    batch = (
        ""
        if stretch["total_batch_size"] is None
        else f"<br>batch of {stretch['total_batch_size']} samples"
    )
    nodes = f"{stretch['node_count']} node{'' if stretch['node_count'] == 1 else 's'}"
    gpus = f"{stretch['gpu_count']} × {escape(stretch['gpu_type'])}"
    return f"{gpus} on {nodes}, {duration(stretch['end'] - stretch['start'])}{batch}"


def _active(name: str, result: Result, scheme: str | None) -> go.Scatter:
    points = result["contention"]
    x, y = [point[0] / 3600 for point in points], [point[1] for point in points]
    hover = f"%{{y}} active jobs, {escape(name)}<extra></extra>"
    return step_line(
        "active jobs",
        x,
        y,
        colour=palette(scheme).muted,
        width=1,
        showlegend=False,
        hovertemplate=hover,
    )
