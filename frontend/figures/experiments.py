"""The figures of an experiment: from what the service answers, as a notebook draws them too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from frontend.figures.links import zooms
from maat.api.experiments import RentedOut, SearchOut
from maat.figures import experiments as figures
from maat.figures.data import Series

HEIGHT = 300


def nodes_figure(runs: Sequence[RentedOut], *, scheme: str | None) -> go.Figure:
    """Time (hours) x nodes rented, a line for each autoscaler."""
    lines = {run["title"]: _until_end(run["rented"], run) for run in _chosen(runs)}
    return zooms(figures.nodes_over_time(lines, scheme=scheme, height=HEIGHT))


def efficiency_figure(runs: Sequence[RentedOut], *, scheme: str | None) -> go.Figure:
    """Time (hours) x statistical efficiency, a line for each autoscaler."""
    lines = {
        run["title"]: _until_end(run["efficiencies"], run)
        for run in _chosen(runs)
        if run["efficiencies"]
    }
    return zooms(figures.efficiency_over_time(lines, scheme=scheme, height=HEIGHT))


def cost_figure(runs: Sequence[RentedOut], *, scheme: str | None) -> go.Figure:
    """Completion time (hours) x node-hours: the autoscalers beside fixed numbers of nodes."""
    costs = {
        run["title"]: figures.Cost(run["seconds"] / 3600, run["node_seconds"] / 3600, run["nodes"])
        for run in runs
    }
    return figures.cost_against_time(costs, scheme=scheme, height=HEIGHT)


def trials_figure(runs: Sequence[SearchOut], *, scheme: str | None) -> go.Figure:
    """Time (hours) x trials that have ended, a line for each search."""
    ends = {name: [at for at, _ in scored] for name, scored in _scored(runs).items()}
    return zooms(figures.trials_over_time(ends, scheme=scheme, height=HEIGHT))


def scores_figure(runs: Sequence[SearchOut], *, scheme: str | None) -> go.Figure:
    """Time (hours) x the best score until then (%), a line for each search."""
    return zooms(figures.best_score_over_time(_scored(runs), scheme=scheme, height=HEIGHT))


def _chosen(runs: Sequence[RentedOut]) -> list[RentedOut]:
    """Return the runs whose nodes an autoscaler chose."""
    return [run for run in runs if run["nodes"] is None]


def _until_end(points: Sequence[Sequence[float | None]], run: RentedOut) -> Series:
    """Return a series whose last value holds to the end of the run."""
    times, values = [(time or 0.0) / 3600 for time, _ in points], [value for _, value in points]
    return Series([*times, run["seconds"] / 3600], [*values, values[-1]])


def _scored(runs: Sequence[SearchOut]) -> Mapping[str, list[tuple[float, float]]]:
    return {
        run["title"]: [(trial["end_seconds"] / 3600, trial["score"]) for trial in run["trials"]]
        for run in runs
    }
