"""Figures of experiments, for notebooks: with plotly, which the extra `maat[plot]` brings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from maat.library.plots import Plots, drawn_by, figure_module
from maat.library.tables import Table

if TYPE_CHECKING:
    import plotly.graph_objects as go


class AutoscaledTables(Protocol):
    """The tables of auto-scaling that figures draw."""

    @property
    def runs(self) -> Table: ...
    @property
    def nodes(self) -> Table: ...
    @property
    def efficiency(self) -> Table: ...


class TunedTables(Protocol):
    """The table of searches that figures draw."""

    @property
    def trials(self) -> Table: ...


class AutoscaledPlots(Plots):
    """The figures of auto-scaling; each is a plotly figure, which a notebook shows.

    The autoscalers have a line over time; fixed numbers of nodes have none.

    >>> import maat
    >>> plot = maat.autoscale("cifar10", cluster="t4=2x4").plot
    >>> [line.name for line in plot.nodes_over_time().data]
    ['by goodput', 'by throughput']
    >>> plot.efficiency_over_time().layout.yaxis.title.text
    'Statistical efficiency'
    >>> [points.name for points in plot.cost_against_time().data]
    ['by goodput', 'by throughput', 'fixed number of nodes']
    """

    def __init__(self, scaled: AutoscaledTables) -> None:
        self._scaled = scaled

    def nodes_over_time(self) -> go.Figure:
        """Return time in hours x nodes rented (Pollux, figure 9a).

        Raises MaatError if plotly is not installed.
        """
        series = self._until_end(self._scaled.nodes, "nodes")
        return drawn_by(figure_module("experiments").nodes_over_time, series)

    def efficiency_over_time(self) -> go.Figure:
        """Return time in hours x statistical efficiency (Pollux, figure 9b).

        Raises MaatError if plotly is not installed.
        """
        series = self._until_end(self._scaled.efficiency, "efficiency")
        return drawn_by(figure_module("experiments").efficiency_over_time, series)

    def cost_against_time(self) -> go.Figure:
        """Return hours to the end x node-hours: the autoscalers beside fixed numbers of nodes.

        Raises MaatError if plotly is not installed.
        """
        figures = figure_module("experiments")
        costs = {
            str(run["run"]): figures.Cost(run["hours"], run["node_hours"], run["nodes"])
            for run in self._scaled.runs
        }
        return drawn_by(figures.cost_against_time, costs)

    def _until_end(self, table: Table, column: str) -> dict[str, Any]:
        """Return a series for each autoscaler, its last value held to its end."""
        series = figure_module("data").Series
        found = {}
        for run in self._scaled.runs:
            points = [row for row in table if row["run"] == run["run"]]
            if run["nodes"] is None and points:
                hours = [float(row["time_seconds"] or 0.0) / 3600 for row in points]
                values = [row[column] for row in points]
                found[str(run["run"])] = series([*hours, run["hours"]], [*values, values[-1]])
        return found


class TunedPlots(Plots):
    """The figures of a search; each is a plotly figure, which a notebook shows.

    >>> import maat
    >>> plot = maat.tune(trials=3, at_a_time=3).plot
    >>> [list(line.y) for line in plot.trials_over_time().data]
    [[0, 1, 2, 3], [0, 1, 2, 3]]
    >>> [line.name for line in plot.best_score_over_time().data]
    ['elastic', 'static']
    """

    def __init__(self, tuned: TunedTables) -> None:
        self._tuned = tuned

    def trials_over_time(self) -> go.Figure:
        """Return time in hours x trials that have ended.

        Raises MaatError if plotly is not installed.
        """
        ends = {name: [at for at, _ in scored] for name, scored in self._scored().items()}
        return drawn_by(figure_module("experiments").trials_over_time, ends)

    def best_score_over_time(self) -> go.Figure:
        """Return time in hours x the best score until then, in percent.

        Raises MaatError if plotly is not installed.
        """
        return drawn_by(figure_module("experiments").best_score_over_time, self._scored())

    def _scored(self) -> dict[str, list[tuple[float, float]]]:
        """Return the hour and the score of every trial, by its search."""
        found: dict[str, list[tuple[float, float]]] = {}
        for trial in self._tuned.trials:
            at, score = (float(trial[name] or 0.0) for name in ("end_seconds", "score"))
            found.setdefault(str(trial["search"]), []).append((at / 3600, score))
        return found
