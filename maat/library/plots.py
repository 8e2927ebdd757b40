"""Figures of runs, for notebooks and `--plot`: with plotly, which the extra `maat[plot]` brings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from inspect import isfunction
from typing import TYPE_CHECKING, Any, Protocol

from maat.library.tables import Table
from maat.scheduling.errors import MaatError, UnknownNameError

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from maat.figures.data import Distribution, Series

NOT_FINISHED = "No job has finished."


class Plots:
    """Figures, each a method; the first is the chief one.

    >>> RunPlots.names()[:2]
    ('jct_cdf', 'waits_cdf')
    >>> import maat
    >>> run = maat.simulate(maat.generate(jobs=5, hours=1, seed=1), policy="fifo")
    >>> run.plot.draw("waits_cdf") == run.plot.waits_cdf()
    True
    >>> RunPlots.check("jct")
    Traceback (most recent call last):
    ...
    maat.scheduling.errors.UnknownNameError: figure: is not drawn of this (got 'jct'). Use one of: jct_cdf, waits_cdf, placement_slowdown_cdf, gpus_over_time, efficiency_over_time, nodes_over_time.
    """  # noqa: E501

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of the figures, the chief one first: what `--figure` takes."""
        members = (
            (name, member)
            for kind in cls.__mro__
            if kind not in Plots.__mro__
            for name, member in vars(kind).items()
        )
        return tuple(
            dict.fromkeys(
                name
                for name, member in members
                if isfunction(member) and not name.startswith("_") and name != "draw"
            )
        )

    @classmethod
    def check(cls, name: str) -> None:
        """Raise UnknownNameError if there is no figure of this name."""
        cls._refuse_unknown(name)

    @classmethod
    def _refuse_unknown(cls, name: str, *, also: str = "") -> None:
        if name not in cls.names():
            raise UnknownNameError(
                "is not drawn of this",
                field="figure",
                value=name,
                remedy=f"Use one of: {', '.join(cls.names())}{also}.",
            )

    def draw(self, name: str | None = None) -> go.Figure:
        """Return the figure of this name; None: the chief one.

        Raises UnknownNameError for another name, MaatError if plotly is not installed.
        """
        chosen = self.names()[0] if name is None else name
        self.check(chosen)
        drawn: go.Figure = getattr(self, chosen)()
        return drawn


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


class RunPlots(Plots):
    """The figures of a run, or of several beside each other, a line for each.

    Each is a plotly figure, which a notebook shows, and `maat.save_figure` writes to a file.

    >>> import maat
    >>> run = maat.simulate(maat.generate(jobs=5, hours=1, seed=1), policy="fifo")
    >>> figure = run.plot.jct_cdf()
    >>> figure.layout.xaxis.title.text, figure.layout.yaxis.title.text
    ('JCT (hours)', 'Share of jobs')
    >>> [area.name for area in run.plot.gpus_over_time().data]
    ['t4', 'rtx', 'a100']
    >>> run.plot.waits_cdf().layout.xaxis.title.text
    'Waiting in all (hours)'
    >>> run.plot.placement_slowdown_cdf().layout.annotations[0].text[:30]
    'No job was slowed by its place'
    >>> run.plot.efficiency_over_time().layout.yaxis.title.text
    'Mean statistical efficiency'
    >>> run.plot.nodes_over_time().layout.yaxis.title.text
    'Nodes in service'
    """

    def __init__(self, runs: Mapping[str, RunTables], *, about: str = "") -> None:
        """`runs`: by the name that figures show; `about`: of which trace, on the axis of times."""
        self._runs, self._about = runs, about

    def jct_cdf(self) -> go.Figure:
        """Return JCT in hours x share of all jobs at or below it; it ends below 1 if some run on.

        Raises MaatError if plotly is not installed.
        """
        return jct_cdf({name: in_hours(run.jobs["jct_seconds"]) for name, run in self._each()})

    def waits_cdf(self) -> go.Figure:
        """Return all waiting of a job in hours x share of jobs at or below it (PAL, figure 12).

        Of finished jobs; it ends below 1 if some run on. Raises MaatError if plotly is not
        installed.
        """
        return waits_cdf({name: in_hours(run.jobs["waited_seconds"]) for name, run in self._each()})

    def placement_slowdown_cdf(self) -> go.Figure:
        """Return slowdown by placement x share of jobs at or below it (PAL, equation 1).

        Of jobs that trained. Words where no job was slowed: all GPUs of a type are as fast, and no
        job spans nodes that slow it. Raises MaatError if plotly is not installed.
        """
        return placement_slowdown_cdf(
            {name: run.jobs["placement_slowdown"] for name, run in self._each()}
        )

    def gpus_over_time(self) -> go.Figure:
        """Return time in hours x GPUs in use: an area for each GPU type; of several runs, lines.

        As PAL's figure 15. Raises MaatError if plotly is not installed.
        """
        return drawn_by(
            figure_module("runs").gpus_in_use,
            {name: _by_type(run.gpus) for name, run in self._each()},
            x=self._time(),
        )

    def efficiency_over_time(self) -> go.Figure:
        """Return time in hours x mean statistical efficiency of the jobs that train.

        As Pollux's figure 5, below. Raises MaatError if plotly is not installed.
        """
        return drawn_by(
            figure_module("runs").mean_efficiency,
            {name: _series(run.efficiency, "efficiency") for name, run in self._each()},
            x=self._time(),
        )

    def nodes_over_time(self) -> go.Figure:
        """Return time in hours x nodes in service. Raises MaatError if plotly is not installed."""
        return drawn_by(
            figure_module("runs").nodes_in_service,
            {name: _series(run.nodes, "nodes") for name, run in self._each()},
            x=self._time(),
        )

    def _time(self) -> str:
        return f"{figure_module('runs').TIME}{self._about}"

    def _each(self) -> Iterable[tuple[str, RunTables]]:
        return self._runs.items()


def jct_cdf(hours: Mapping[str, Iterable[float | None]]) -> go.Figure:
    """Draw the JCT of jobs by the name of the line; None: it has not finished."""
    lines = distributions(hours)
    return drawn_by(
        figure_module("distributions").cdf, lines, x="JCT (hours)", nothing=NOT_FINISHED
    )


def waits_cdf(hours: Mapping[str, Iterable[float | None]]) -> go.Figure:
    """Draw all waiting of jobs by the name of the line; None: it has not finished."""
    lines, draw = distributions(hours), figure_module("distributions").cdf
    return drawn_by(draw, lines, x=figure_module("runs").WAITED, nothing=NOT_FINISHED)


def placement_slowdown_cdf(times: Mapping[str, Iterable[Any]]) -> go.Figure:
    """Draw the slowdowns of jobs by the name of the line; None, of no training, is left out."""
    trained = {name: [each for each in of if each is not None] for name, of in times.items()}
    return drawn_by(figure_module("runs").placement_slowdowns, distributions(trained))


def distributions(values: Mapping[str, Iterable[float | None]]) -> dict[str, Distribution]:
    of = figure_module("data").Distribution.of
    return {name: of(each) for name, each in values.items()}


def in_hours(seconds: Iterable[Any]) -> list[float | None]:
    return [None if value is None else float(value) / 3600 for value in seconds]


def _series(table: Table, column: str) -> Series:
    series: Series = figure_module("data").Series(in_hours(table["time_seconds"]), table[column])
    return series


def _by_type(used: Table) -> dict[str, Series]:
    types = [name.removesuffix("_gpus") for name in used.columns if "_gpus" in name]
    return {kind: _series(used, f"{kind}_gpus") for kind in types}


def drawn_by(draw: Callable[..., go.Figure], *data: object, **words: object) -> go.Figure:
    """Return a figure with a background of its own: a notebook's may be dark."""
    figure: go.Figure = figure_module("theme").on_paper(draw(*data, **words))
    return figure


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
