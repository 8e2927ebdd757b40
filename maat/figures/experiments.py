"""Figures of experiments: nodes and efficiency over time, their cost; trials over time, scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from math import log10
from typing import Any, NamedTuple

import plotly.graph_objects as go

from maat.figures.axes import log_axis, titled_figure
from maat.figures.base import LEGEND_ABOVE, empty_figure
from maat.figures.data import Series
from maat.figures.marks import Mark, mark
from maat.figures.steps import step_lines
from maat.figures.texts import escape
from maat.vocabulary import BEST_SCORES

TIME = "Time (hours)"
NOT_PLAYED = "No run has ended."
NO_TRIAL = "No trial has ended."
FIXED = "fixed number of nodes"
ROOM = 1.25  # beside the first and the last point, as a factor


class Cost(NamedTuple):
    """What a run cost and how long it took; `nodes`: their number, if it was fixed."""

    hours: float
    node_hours: float
    nodes: int | None = None


def nodes_over_time(
    nodes: Mapping[str, Series], *, scheme: str | None = None, height: int | None = None
) -> go.Figure:
    """Return time in hours x nodes that are rented, a step line for each run (Pollux, figure 9)."""
    return step_lines(
        nodes, x=TIME, y="Nodes rented", scheme=scheme, height=height, nothing=NOT_PLAYED
    )


def efficiency_over_time(
    efficiency: Mapping[str, Series], *, scheme: str | None = None, height: int | None = None
) -> go.Figure:
    """Return time in hours x statistical efficiency, a step line for each run (Pollux eq. 6)."""
    return step_lines(
        efficiency,
        x=TIME,
        y="Statistical efficiency",
        shares=True,
        scheme=scheme,
        height=height,
        nothing=NOT_PLAYED,
    )


def cost_against_time(
    costs: Mapping[str, Cost], *, scheme: str | None = None, height: int | None = None
) -> go.Figure:
    """Return hours to the end x node-hours: a line through the fixed sizes, a point for each other.

    What is left of the line and below it is sooner and cheaper than any fixed number of nodes.

    >>> drawn = cost_against_time(
    ...     {"by goodput": Cost(1.6, 9.0), "4": Cost(2.0, 8.0, 4), "8": Cost(1.5, 12.0, 8)}
    ... )
    >>> [(trace.name, list(trace.x)) for trace in drawn.data]
    [('by goodput', [1.6]), ('fixed number of nodes', [1.5, 2.0])]
    """
    if not costs:
        return empty_figure(scheme, NOT_PLAYED, height=height)
    drawn = titled_figure(scheme, x="Completion time (hours)", y="Cost (node-hours)", height=height)
    chosen = {name: cost for name, cost in costs.items() if cost.nodes is None}
    fixed = sorted(cost for cost in costs.values() if cost.nodes is not None)
    for index, (name, cost) in enumerate(chosen.items()):
        drawn.add_trace(_points(name, [cost], mark(index), size=11))
    if fixed:
        drawn.add_trace(_points(FIXED, fixed, mark(len(chosen)), size=7))
    drawn.update_xaxes(**_scale([cost.hours for cost in costs.values() if cost.hours > 0]))
    drawn.update_yaxes(rangemode="tozero")
    return drawn.update_layout(showlegend=True, hovermode="closest", margin={"t": LEGEND_ABOVE})


def _scale(hours: Sequence[float]) -> dict[str, Any]:
    """Return what makes the axis of times logarithmic, with room at both ends."""
    if not hours:
        return {}
    ends = (min(hours) / ROOM, max(hours) * ROOM)
    return {**log_axis(ends), "range": [log10(end) for end in ends]}


def _points(name: str, costs: Sequence[Cost], look: Mark, *, size: int) -> go.Scatter:
    shown = ["" if cost.nodes is None else str(cost.nodes) for cost in costs]
    told = [escape(name) if cost.nodes is None else f"{cost.nodes} nodes" for cost in costs]
    return go.Scatter(
        name=escape(name),
        x=[cost.hours for cost in costs],
        y=[cost.node_hours for cost in costs],
        mode="markers" if len(costs) == 1 and not shown[0] else "lines+markers+text",
        text=shown,
        textposition="bottom center",
        line={"color": look.colour, "width": 1, "dash": "dot"},
        marker={"color": look.colour, "size": size, "symbol": look.symbol},
        customdata=told,
        hovertemplate="%{customdata}: %{y:.4g} node-hours in %{x:.4g} h<extra></extra>",
    )


def trials_over_time(
    ends: Mapping[str, Sequence[float]], *, scheme: str | None = None, height: int | None = None
) -> go.Figure:
    """Return time in hours x trials that have ended, a step line for each search.

    `ends`: the hours at which trials ended, in any order, by the name of the search.

    >>> drawn = trials_over_time({"elastic": [2.0, 1.0]})
    >>> list(drawn.data[0].x), list(drawn.data[0].y)
    ([0.0, 1.0, 2.0], [0, 1, 2])
    """
    return step_lines(
        {
            name: Series([0.0, *sorted(hours)], range(len(hours) + 1))
            for name, hours in ends.items()
            if hours
        },
        x=TIME,
        y="Trials that have ended",
        scheme=scheme,
        height=height,
        nothing=NO_TRIAL,
    )


def best_score_over_time(
    scored: Mapping[str, Sequence[tuple[float, float]]],
    *,
    scheme: str | None = None,
    height: int | None = None,
) -> go.Figure:
    """Return time in hours x the best score until then, in percent, a step line for each search.

    `scored`: (hours at which a trial ended, its score), in any order, by the name of the search.

    >>> drawn = best_score_over_time({"elastic": [(2.0, 90.0), (1.0, 91.0), (3.0, 92.0)]})
    >>> list(drawn.data[0].x), list(drawn.data[0].y)
    ([1.0, 2.0, 3.0], [91.0, 91.0, 92.0])
    """
    drawn = step_lines(
        {
            name: Series([at for at, _ in ended], _best_so_far(score for _, score in ended))
            for name, trials in scored.items()
            if (ended := sorted(trials))
        },
        x=TIME,
        y="Best score so far (%)",
        scheme=scheme,
        height=height,
        nothing=NO_TRIAL,
    )
    return drawn.update_yaxes(rangemode="normal")


def _best_so_far(scores: Iterable[float]) -> list[float]:
    return list(accumulate(scores, max))


def best_scores(trials: int) -> str:
    """Return what a search's score is, of so many trials: `Score of the best 5`."""
    best = min(BEST_SCORES, trials)
    return "Best score" if best == 1 else f"Score of the best {best}"
