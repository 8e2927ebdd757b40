"""Figures of runs, for notebooks: with plotly, which the extra `maat[plot]` brings."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from maat.colours import DASHES, SERIES, gpu_colour, gpu_order
from maat.library.tables import Table
from maat.scheduling.errors import MaatError

if TYPE_CHECKING:
    import plotly.graph_objects as go


class RunPlots:
    """The figures of one run; each is a plotly figure, which a notebook shows.

    >>> import maat
    >>> run = maat.simulate(maat.generate(jobs=5, hours=1, seed=1), policy="fifo")
    >>> figure = run.plot.jct_cdf()
    >>> figure.layout.xaxis.title.text, figure.layout.yaxis.title.text
    ('JCT (hours)', 'Share of jobs')
    """

    def __init__(self, name: str, jobs: Table, rounds: Table) -> None:
        self._name, self._jobs, self._rounds = name, jobs, rounds

    def jct_cdf(self) -> go.Figure:
        """Return JCT in hours x share of all jobs at or below it; it ends below 1 if some run on.

        Raises MaatError if plotly is not installed.
        """
        known = [float(value) for value in self._jobs["jct_seconds"] if value is not None]
        return _with_axes(
            [_cdf(self._name, [s / 3600 for s in known], jobs=len(self._jobs), index=0)],
            x="JCT (hours)",
            y="Share of jobs",
            empty="No job has finished.",
        )

    def gpus_over_time(self) -> go.Figure:
        """Return time in hours x GPUs held, an area for each GPU type on the other.

        Raises MaatError if plotly is not installed.
        """
        hours = [float(value or 0) / 3600 for value in self._rounds["time_seconds"]]
        types = [name.removesuffix("_gpus") for name in self._rounds.columns if "_gpus" in name]
        areas = [
            _graph_objects().Scatter(
                name=html.escape(kind),
                x=hours,
                y=self._rounds[f"{kind}_gpus"],
                mode="lines",
                stackgroup="gpus",
                line={"shape": "hv", "color": gpu_colour(kind), "width": 1},
            )
            for kind in gpu_order(types)
        ]
        return _with_axes(
            areas if hours else [], x="Time (hours)", y="GPUs held", empty="No round was played."
        )


class ComparisonPlots:
    """The figures of a comparison; each is a plotly figure, which a notebook shows.

    >>> import maat
    >>> found = maat.compare(["fifo", "las"], maat.generate(jobs=4, hours=1, seed=1), workers=1)
    >>> [line.name for line in found.plot.jct_cdf().data]
    ['fifo + packed-sticky', 'las + packed-sticky']
    """

    def __init__(self, jobs: Table, runs: Table) -> None:
        self._jobs, self._runs = jobs, runs

    def jct_cdf(self) -> go.Figure:
        """Return JCT in hours x share of the jobs of all runs at or below it, a line for each.

        Raises MaatError if plotly is not installed.
        """
        hours: dict[Any, list[float]] = {}
        jobs: dict[Any, int] = {}
        for run in self._runs:
            jobs[run["contestant"]] = jobs.get(run["contestant"], 0) + int(run["jobs"] or 0)
        for job in self._jobs:
            hours.setdefault(job["contestant"], []).append(float(job["jct_hours"] or 0))
        lines = [
            _cdf(str(name), hours[name], jobs=jobs[name], index=index)
            for index, name in enumerate(name for name in jobs if name in hours)
        ]
        return _with_axes(lines, x="JCT (hours)", y="Share of jobs", empty="No job has finished.")


def _cdf(name: str, hours: Sequence[float], *, jobs: int, index: int) -> Any:
    """Return a step line: `hours` x share of `jobs` at or below it."""
    ordered = sorted(hours)
    first = ordered[:1]  # from 0 up at the shortest
    return _graph_objects().Scatter(
        name=html.escape(name),
        x=[*first, *ordered],
        y=[*(0.0 for _ in first), *((rank + 1) / jobs for rank in range(len(ordered)))],
        mode="lines",
        line={
            "shape": "hv",
            "color": SERIES[index % len(SERIES)],
            "dash": DASHES[index % len(DASHES)],
        },
    )


def _with_axes(lines: Sequence[Any], *, x: str, y: str, empty: str) -> go.Figure:
    """Return the lines on axes with their units; without any, what there is none of."""
    figure = _graph_objects().Figure(list(lines))
    figure.update_layout(template="plotly_white", showlegend=True, hovermode="x unified")
    figure.update_xaxes(title_text=x, rangemode="tozero")
    figure.update_yaxes(title_text=y, rangemode="tozero")
    if not any(len(line.x or ()) for line in lines):
        figure.add_annotation(text=empty, x=0.5, y=0.5, xref="paper", yref="paper", showarrow=False)
    return figure


def _graph_objects() -> Any:
    try:
        import plotly.graph_objects as go
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != "plotly":
            raise
        raise MaatError(
            "Figures are an extra. Install it with: pip install 'maat[plot]'"
        ) from missing
    return go
