"""Figures of comparisons and sweeps: of their means, and of the series that their runs kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, Protocol

from maat.laboratory.axes import Axis, AxisValue
from maat.laboratory.figures import FIGURES, Figure
from maat.laboratory.sweep import Row, Sweep
from maat.laboratory.sweep_runner import SweepResult
from maat.library.plots import (
    Plots,
    RunPlots,
    RunTables,
    drawn_by,
    figure_module,
    in_hours,
    jct_cdf,
    placement_slowdown_cdf,
    waits_cdf,
)
from maat.library.tables import Table
from maat.scheduling.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from maat.figures.data import Estimate

MEAN_JCT = "avg_jct_hours"
NO_VALUE = "No run has this figure."
REPLAYED = "replayed window"
NOTHING = "There is nothing to set against each other."


class KeptTables(RunTables, Protocol):
    """The tables that are kept of a run. `line`: the name of who had it, as figures show it."""

    @property
    def line(self) -> str: ...
    @property
    def trace(self) -> str: ...
    @property
    def seed(self) -> int: ...


def where(run: KeptTables) -> str:
    """Return the trace of a run, where it has a name, and its seed."""
    return f"{run.trace}, seed {run.seed}" if run.trace else f"seed {run.seed}"


class StudyPlots(Plots, ABC):
    """The figures that every study of several runs has; of most, the runs' series are needed."""

    @abstractmethod
    def means(self, figure: str = MEAN_JCT) -> go.Figure:
        """Return the means of a figure of the tables."""

    def waits_cdf(self) -> go.Figure:
        """Return all waiting of a job in hours x share of the jobs of all runs (PAL, figure 12).

        Raises InputError if the series were not kept, MaatError if plotly is not installed.
        """
        return waits_cdf(self._of_all("waited_seconds", hours=True))

    def placement_slowdown_cdf(self) -> go.Figure:
        """Return slowdown by placement x share of the jobs of all runs (PAL, equation 1).

        Raises InputError if the series were not kept, MaatError if plotly is not installed.
        """
        return placement_slowdown_cdf(self._of_all("placement_slowdown"))

    def gpus_over_time(self, *, trace: str | None = None, seed: int | None = None) -> go.Figure:
        """Return time in hours x GPUs in use, a line for each run of a trace (PAL, figure 15).

        `trace`, `seed`: whose runs; None: the first one's. Raises InputError if there are none, or
        if their series were not kept; MaatError if plotly is not installed.
        """
        return self._side_by_side(trace, seed).gpus_over_time()

    def efficiency_over_time(
        self, *, trace: str | None = None, seed: int | None = None
    ) -> go.Figure:
        """Return time in hours x mean statistical efficiency of the jobs that train (Pollux 5).

        `trace`, `seed` and errors: as of `gpus_over_time`.
        """
        return self._side_by_side(trace, seed).efficiency_over_time()

    def nodes_over_time(self, *, trace: str | None = None, seed: int | None = None) -> go.Figure:
        """Return time in hours x nodes in service, a line for each run of a trace.

        `trace`, `seed` and errors: as of `gpus_over_time`.
        """
        return self._side_by_side(trace, seed).nodes_over_time()

    @classmethod
    def needs_series(cls, name: str | None) -> bool:
        """Return whether a figure draws the series of runs, which are kept if they are asked for.

        >>> ComparisonPlots.needs_series("gpus_over_time"), ComparisonPlots.needs_series("ratios")
        (True, False)
        """
        return name in vars(StudyPlots) and name != "means"

    @classmethod
    def check(cls, name: str) -> None:
        """Raise UnknownNameError if there is no figure of this name, in the tables neither."""
        if name not in FIGURES:
            cls._refuse_unknown(name, also=f"; or a figure of the tables, such as {MEAN_JCT}")

    def draw(self, name: str | None = None) -> go.Figure:
        """Return the figure of this name; of a figure of the tables, its means.

        Raises as Plots.draw.
        """
        return self.means(str(name)) if name in FIGURES else super().draw(name)

    @abstractmethod
    def _kept(self) -> Sequence[KeptTables]:
        """Return the kept tables of the runs, in order. Raises InputError if there are none."""

    def _of_all(self, column: str, *, hours: bool = False) -> Mapping[str, list[float | None]]:
        """Return a column of the jobs of all runs, by the name of their line."""
        values: dict[str, list[Any]] = {}
        for kept in self._kept():
            cells = kept.jobs[column]
            values.setdefault(kept.line, []).extend(in_hours(cells) if hours else cells)
        return values

    def _side_by_side(self, trace: str | None, seed: int | None) -> RunPlots:
        kept = self._kept()
        chosen = [
            each for each in kept if trace in (None, each.trace) and seed in (None, each.seed)
        ]
        if not chosen:
            raise InputError(
                "was not played",
                field="seed" if trace is None else "trace",
                value=", ".join(str(each) for each in (trace, seed) if each is not None),
                remedy=f"Use one of: {'; '.join(dict.fromkeys(where(each) for each in kept))}.",
            )
        first = chosen[0]
        runs = {
            each.line: each
            for each in chosen
            if (each.trace, each.seed) == (first.trace, first.seed)
        }
        several = len({where(each) for each in kept}) > 1
        return RunPlots(runs, about=f" of {where(first)}" if several else "")


class ComparedTables(Protocol):
    """The tables of a comparison that figures draw."""

    @property
    def runs(self) -> Table: ...
    @property
    def jobs(self) -> Table: ...
    @property
    def differences(self) -> Table: ...
    def kept(self) -> Sequence[KeptTables]: ...


class ComparisonPlots(StudyPlots):
    """The figures of a comparison; each is a plotly figure, which a notebook shows.

    >>> import maat
    >>> trace = maat.generate(jobs=4, hours=1, seed=1)
    >>> found = maat.compare(["fifo", "las"], trace, workers=1, series=True)
    >>> [line.name for line in found.plot.jct_cdf().data]
    ['fifo + packed-sticky', 'las + packed-sticky']
    >>> list(found.plot.ratios().data[0].y)
    ['las + packed-sticky']
    >>> [bar.name for bar in found.plot.means("p99_jct_hours").data]
    ['fifo + packed-sticky', 'las + packed-sticky']
    >>> over_time = [found.plot.gpus_over_time(), found.plot.efficiency_over_time(seed=0)]
    >>> [[line.name for line in figure.data] for figure in over_time]
    [['fifo + packed-sticky', 'las + packed-sticky'], ['fifo + packed-sticky', 'las + packed-sticky']]
    >>> found.plot.nodes_over_time().layout.yaxis.title.text
    'Nodes in service'
    >>> found.plot.waits_cdf().layout.xaxis.title.text
    'Waiting in all (hours)'
    >>> found.plot.placement_slowdown_cdf().layout.annotations[0].text[:30]
    'No job was slowed by its place'
    """  # noqa: E501

    def __init__(self, compared: ComparedTables) -> None:
        self._compared = compared

    def jct_cdf(self) -> go.Figure:
        """Return JCT in hours x share of the jobs of all runs at or below it, a line for each.

        Raises MaatError if plotly is not installed.
        """
        hours: dict[str, list[float | None]] = {}
        jobs: dict[str, int] = {}
        for run in self._compared.runs:
            name = str(run["contestant"])
            jobs[name] = jobs.get(name, 0) + int(run["jobs"] or 0)
        for job in self._compared.jobs:
            if job["jct_hours"] is not None:
                hours.setdefault(str(job["contestant"]), []).append(float(job["jct_hours"]))
        return jct_cdf(
            {
                name: [*hours.get(name, ()), *[None] * (many - len(hours.get(name, ())))]
                for name, many in jobs.items()
            }
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
            nothing=NOTHING,
        )

    def means(self, figure: str = MEAN_JCT) -> go.Figure:
        """Return trace x a figure, by its name in the tables; a bar for each contestant.

        The mean over the seeds, with a sample deviation each way. Raises UnknownNameError for
        another name, MaatError if plotly is not installed.
        """
        check_figure(figure)
        values: dict[str, dict[str, list[float]]] = {}
        traces: dict[str, None] = {}
        for run in self._compared.runs:
            trace = str(run.get("trace", REPLAYED))
            of_trace = values.setdefault(str(run["contestant"]), {}).setdefault(trace, [])
            traces[trace] = None
            if (value := run.get(figure)) is not None:
                of_trace.append(float(value))
        seeds = len(set(self._compared.runs["seed"]))
        return drawn_by(
            figure_module("bars").grouped_bars,
            list(traces),
            {
                name: [_over_seeds(by_trace.get(trace, ())) for trace in traces]
                for name, by_trace in values.items()
            },
            x="Trace",
            y=_title(FIGURES[figure], seeds),
            nothing=NO_VALUE,
        ).update_yaxes(**_in_percent(FIGURES[figure]))

    def _kept(self) -> Sequence[KeptTables]:
        return self._compared.kept()


class SweptTables(Protocol):
    """What figures draw of a sweep: its axes, its means, its runs."""

    @property
    def sweep(self) -> Sweep: ...
    @property
    def result(self) -> SweepResult: ...
    def kept(self) -> Sequence[KeptTables]: ...


class SweepPlots(StudyPlots):
    """The figures of a sweep; each is a plotly figure, which a notebook shows.

    >>> import maat
    >>> trace = maat.generate("philly", jobs=4, hours=1)
    >>> vary = {"round_seconds": [60, 360], "policy": ["fifo", "las"]}
    >>> swept = maat.sweep(trace, vary, workers=1, series=True)
    >>> [line.name for line in swept.plot.means().data]
    ['policy = fifo', 'policy = las']
    >>> swept.plot.means("restarts_per_job").layout.xaxis.title.text
    'Round duration (s)'
    >>> [line.name for line in swept.plot.gpus_over_time().data][:2]
    ['round_seconds = 60, policy = fifo', 'round_seconds = 60, policy = las']
    """

    def __init__(self, swept: SweptTables) -> None:
        self._swept = swept

    def means(self, figure: str = MEAN_JCT) -> go.Figure:
        """Return first setting x a figure, by its name in the tables; a line for each second one.

        The mean over the seeds, with a sample deviation each way (Sia, figures 7, 10 and 11).
        Raises UnknownNameError for another name, MaatError if plotly is not installed.
        """
        check_figure(figure)
        rows = [row for row in self._swept.result.rows() if figure in row.mean]
        varied, *_ = self._swept.sweep.axes
        first, *others = (each.axis for each in self._swept.sweep.axes)
        series: dict[str, list[tuple[AxisValue, Estimate]]] = {}
        for row in rows:
            name = setting_name({other.name: row.settings[other.name] for other in others})
            series.setdefault(name or FIGURES[figure].title, []).append(
                (row.settings[first.name], _of_row(row, figure))
            )
        seeds = max((len(row.seeds) for row in rows), default=1)
        return drawn_by(
            figure_module("lines").lines,
            series,
            x=_axis_title(first),
            y=_title(FIGURES[figure], seeds),
            ranges="whiskers",
            log_x=first.logarithmic,
            places=varied.values,
            nothing=NO_VALUE,
        ).update_yaxes(**_in_percent(FIGURES[figure]))

    def _kept(self) -> Sequence[KeptTables]:
        return self._swept.kept()


def check_figure(name: str) -> None:
    """Raise UnknownNameError if the tables have no figure of this name."""
    if name not in FIGURES:
        raise UnknownNameError(
            "is no figure of the tables",
            field="figure",
            value=name,
            remedy=f"Use one of: {', '.join(FIGURES)}.",
        )


def setting_name(settings: Mapping[str, AxisValue]) -> str:
    """Return settings as the name of a line: `p = -1, policy = sia`."""
    return ", ".join(
        f"{name} = {value if isinstance(value, str) else f'{value:g}'}"
        for name, value in settings.items()
    )


def _over_seeds(values: Sequence[float]) -> Estimate:
    estimate = figure_module("data").Estimate
    mean = fmean(values) if values else None
    found: Estimate = (
        estimate(mean) if len(values) < 2 or mean is None else _around(mean, stdev(values))
    )
    return found


def _of_row(row: Row, figure: str) -> Estimate:
    mean = row.mean[figure]
    if len(row.seeds) > 1:
        return _around(mean, row.spread[figure])
    found: Estimate = figure_module("data").Estimate(mean)
    return found


def _around(mean: float, deviation: float) -> Estimate:
    found: Estimate = figure_module("data").Estimate(mean, mean - deviation, mean + deviation)
    return found


def _title(figure: Figure, seeds: int) -> str:
    title = figure.title if figure.unit is None else f"{figure.title} ({figure.unit})"
    return f"{title}, mean ± deviation over {seeds} seeds" if seeds > 1 else title


def _axis_title(axis: Axis) -> str:
    return axis.title if axis.unit is None else f"{axis.title} ({axis.unit})"


def _in_percent(figure: Figure) -> dict[str, str]:
    return {"tickformat": ".0%"} if figure.form.endswith("%}") else {}
