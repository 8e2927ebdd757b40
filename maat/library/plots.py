"""Figures of runs, for notebooks: with plotly, which the extra `maat[plot]` brings."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from maat.colours import gpu_colour, gpu_order
from maat.library.tables import Table
from maat.scheduling.errors import MaatError

if TYPE_CHECKING:
    import plotly.graph_objects as go

NOT_FINISHED = "No job has finished."


class RunTables(Protocol):
    """The tables of a run that figures draw."""

    @property
    def jobs(self) -> Table: ...
    @property
    def gpus(self) -> Table: ...
    @property
    def efficiency(self) -> Table: ...
    @property
    def nodes(self) -> Table: ...


class ComparedTables(Protocol):
    """The tables of a comparison that figures draw."""

    @property
    def runs(self) -> Table: ...
    @property
    def jobs(self) -> Table: ...
    @property
    def differences(self) -> Table: ...


class RunPlots:
    """The figures of one run; each is a plotly figure, which a notebook shows.

    >>> import maat
    >>> run = maat.simulate(maat.generate(jobs=5, hours=1, seed=1), policy="fifo")
    >>> figure = run.plot.jct_cdf()
    >>> figure.layout.xaxis.title.text, figure.layout.yaxis.title.text
    ('JCT (hours)', 'Share of jobs')
    >>> [area.name for area in run.plot.gpus_over_time().data]
    ['t4', 'rtx', 'a100']
    >>> run.plot.waits_cdf().layout.xaxis.title.text
    'Waiting in all (hours)'
    >>> run.plot.efficiency_over_time().layout.yaxis.title.text
    'Mean statistical efficiency'
    >>> run.plot.nodes_over_time().layout.yaxis.title.text
    'Nodes in service'
    """

    def __init__(self, name: str, run: RunTables) -> None:
        self._name, self._run = name, run

    def jct_cdf(self) -> go.Figure:
        """Return JCT in hours x share of all jobs at or below it; it ends below 1 if some run on.

        Raises MaatError if plotly is not installed.
        """
        of = figure_module("data").Distribution.of
        return drawn_by(
            figure_module("distributions").cdf,
            {self._name: of(_hours(value) for value in self._run.jobs["jct_seconds"])},
            x="JCT (hours)",
            nothing=NOT_FINISHED,
        )

    def waits_cdf(self) -> go.Figure:
        """Return all waiting of a job in hours x share of jobs at or below it (PAL, figure 12).

        Of finished jobs; it ends below 1 if some run on. Raises MaatError if plotly is not
        installed.
        """
        of = figure_module("data").Distribution.of
        return drawn_by(
            figure_module("distributions").cdf,
            {self._name: of(_hours(value) for value in self._run.jobs["waited_seconds"])},
            x="Waiting in all (hours)",
            nothing=NOT_FINISHED,
        )

    def gpus_over_time(self) -> go.Figure:
        """Return time in hours x GPUs in use, an area for each GPU type on the other.

        Raises MaatError if plotly is not installed.
        """
        used = self._run.gpus
        at = [_hours(value) for value in used["time_seconds"]]
        names = [name.removesuffix("_gpus") for name in used.columns if "_gpus" in name]
        types, series = gpu_order(names), figure_module("data").Series
        return drawn_by(
            figure_module("areas").stacked_areas,
            {kind: series(at, used[f"{kind}_gpus"]) for kind in types} if at else {},
            x="Time (hours)",
            y="GPUs in use",
            colours={kind: gpu_colour(kind) for kind in types},
            nothing="No job held a GPU.",
        )

    def efficiency_over_time(self) -> go.Figure:
        """Return time in hours x mean statistical efficiency of the jobs that train.

        As Pollux's figure 5, below. Raises MaatError if plotly is not installed.
        """
        return self._steps(
            self._run.efficiency,
            "efficiency",
            y="Mean statistical efficiency",
            nothing="No job trained.",
            shares=True,
        )

    def nodes_over_time(self) -> go.Figure:
        """Return time in hours x nodes in service. Raises MaatError if plotly is not installed."""
        return self._steps(
            self._run.nodes, "nodes", y="Nodes in service", nothing="No time has passed."
        )

    def _steps(
        self, table: Table, column: str, *, y: str, nothing: str, shares: bool = False
    ) -> go.Figure:
        at = [_hours(value) for value in table["time_seconds"]]
        return drawn_by(
            figure_module("steps").step_lines,
            {self._name: figure_module("data").Series(at, table[column])},
            x="Time (hours)",
            y=y,
            shares=shares,
            nothing=nothing,
        )


class ComparisonPlots:
    """The figures of a comparison; each is a plotly figure, which a notebook shows.

    >>> import maat
    >>> found = maat.compare(["fifo", "las"], maat.generate(jobs=4, hours=1, seed=1), workers=1)
    >>> [line.name for line in found.plot.jct_cdf().data]
    ['fifo + packed-sticky', 'las + packed-sticky']
    >>> list(found.plot.ratios().data[0].y)
    ['las + packed-sticky']
    """

    def __init__(self, compared: ComparedTables) -> None:
        self._compared = compared

    def jct_cdf(self) -> go.Figure:
        """Return JCT in hours x share of the jobs of all runs at or below it, a line for each.

        Raises MaatError if plotly is not installed.
        """
        hours: dict[Any, list[float]] = {}
        jobs: dict[Any, int] = {}
        for run in self._compared.runs:
            jobs[run["contestant"]] = jobs.get(run["contestant"], 0) + int(run["jobs"] or 0)
        for job in self._compared.jobs:
            if job["jct_hours"] is not None:
                hours.setdefault(job["contestant"], []).append(float(job["jct_hours"]))
        of = figure_module("data").Distribution.of
        return drawn_by(
            figure_module("distributions").cdf,
            {str(name): of(hours.get(name, ()), total=jobs[name]) for name in jobs},
            x="JCT (hours)",
            nothing=NOT_FINISHED,
        )

    def ratios(self) -> go.Figure:
        """Return JCT over the baseline's with its 95 % interval, a row for each other contestant.

        The geometric mean over the jobs that finished under both. Raises MaatError if plotly is not
        installed.
        """
        estimate = figure_module("data").Estimate
        known = [row for row in self._compared.differences if row["ratio_low"] is not None]
        rows = {
            str(row["contestant"]): estimate(row["ratio"], row["ratio_low"], row["ratio_high"])
            for row in known
        }
        baseline = known[0]["baseline"] if known else ""
        return drawn_by(
            figure_module("ratios").ratios,
            rows,
            x=f"JCT relative to {baseline}, geometric mean over jobs",
            nothing="There is nothing to set against each other.",
        )


def _hours(seconds: Any) -> float | None:
    return None if seconds is None else float(seconds) / 3600


def drawn_by(draw: Callable[..., go.Figure], *data: object, **words: object) -> go.Figure:
    """Return a figure with a background of its own: a notebook's may be dark."""
    drawn: go.Figure = figure_module("theme").on_paper(draw(*data, **words))
    return drawn


def figure_module(name: str) -> Any:
    """Return a module of maat.figures. Raises MaatError if plotly is not installed."""
    try:
        return import_module(f"maat.figures.{name}")
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != "plotly":
            raise
        raise MaatError(
            "Figures are an extra. Install it with: pip install 'maat[plot]'"
        ) from missing
