"""Runs beside each other: what the cluster did over time, how long jobs waited, what slowed them.

Figures 5 of Pollux and 12 and 15 of PAL.
"""

from __future__ import annotations

from collections.abc import Mapping

import plotly.graph_objects as go

from maat.colours import gpu_colour, gpu_order
from maat.figures.areas import aligned, stacked_areas
from maat.figures.base import empty_figure
from maat.figures.data import Distribution, Series
from maat.figures.distributions import cdf
from maat.figures.steps import step_lines

TIME = "Time (hours)"
WAITED = "Waiting in all (hours)"
SLOWDOWN = "Placement slowdown (times)"


def gpus_in_use(
    runs: Mapping[str, Mapping[str, Series]],
    *,
    x: str = TIME,
    scheme: str | None = None,
    height: int | None = None,
    nothing: str = "No job held a GPU.",
    remedy: str = "",
) -> go.Figure:
    """Return time x GPUs in use: of one run an area for each GPU type, of several a line each.

    Args:
        runs: By name of the run and by GPU type, GPUs in use from each hour to the next; those
            without any are left out.
        x: Title of the axis of times.
        nothing: What an empty figure says, and below it, as `remedy`, what to do.

    >>> used = {"t4": Series([0.0, 1.0], [4, 0]), "a100": Series([0.5], [8])}
    >>> [area.name for area in gpus_in_use({"sia": used}).data]
    ['t4', 'a100']
    >>> [list(line.y) for line in gpus_in_use({"sia": used, "fifo": used}).data]
    [[4, 12, 8], [4, 12, 8]]
    """
    known = {
        name: by_type
        for name, by_type in runs.items()
        if any(len(series.at) for series in by_type.values())
    }
    if len(known) == 1:
        [by_type] = known.values()
        types = gpu_order(by_type)
        return stacked_areas(
            {kind: by_type[kind] for kind in types},
            x=x,
            y="GPUs in use",
            colours={kind: gpu_colour(kind) for kind in types},
            scheme=scheme,
            height=height,
        )
    return step_lines(
        {name: _summed(by_type) for name, by_type in known.items()},
        x=x,
        y="GPUs in use",
        scheme=scheme,
        height=height,
        nothing=nothing,
        remedy=remedy,
    )


def _summed(by_type: Mapping[str, Series]) -> Series:
    parts = list(aligned({kind: series for kind, series in by_type.items() if series.at}).values())
    return Series(
        parts[0].at,
        [
            sum(value or 0 for value in each)
            for each in zip(*(p.values for p in parts), strict=True)
        ],
    )


def mean_efficiency(
    runs: Mapping[str, Series],
    *,
    x: str = TIME,
    scheme: str | None = None,
    height: int | None = None,
    nothing: str = "No job trained.",
    remedy: str = "",
) -> go.Figure:
    """Return time x mean statistical efficiency of the jobs that train, a line for each run.

    `runs`: by name, from each hour to the next, 0 to 1; None where no job trains.

    >>> mean_efficiency({"sia": Series([0.0, 1.0], [1.0, 0.5])}).layout.yaxis.tickformat
    '.0%'
    """
    return step_lines(
        runs,
        x=x,
        y="Mean statistical efficiency",
        shares=True,
        scheme=scheme,
        height=height,
        nothing=nothing,
        remedy=remedy,
    )


def nodes_in_service(
    runs: Mapping[str, Series],
    *,
    x: str = TIME,
    scheme: str | None = None,
    height: int | None = None,
    nothing: str = "No time has passed.",
    remedy: str = "",
) -> go.Figure:
    """Return time x nodes in service, a line for each run; `runs`: from each hour to the next.

    >>> list(nodes_in_service({"sia": Series([0.0, 1.0], [4, 3])}).data[0].y)
    [4, 3]
    """
    return step_lines(
        runs,
        x=x,
        y="Nodes in service",
        scheme=scheme,
        height=height,
        nothing=nothing,
        remedy=remedy,
    )


def placement_slowdowns(
    runs: Mapping[str, Distribution],
    *,
    scheme: str | None = None,
    height: int | None = None,
    nothing: str = "No job trained.",
    remedy: str = "",
) -> go.Figure:
    """Return slowdown by placement x share of jobs at or below it, a line for each run.

    Words where no job was slowed. `runs`: by name, the slowdown of each job, L x max V of PAL's
    equation 1; 1: its GPUs and nodes cost it nothing.

    >>> drawn = placement_slowdowns({"sia": Distribution.of([1.0, 1.5])})
    >>> drawn.layout.xaxis.title.text
    'Placement slowdown (times)'
    """
    known = {name: line for name, line in runs.items() if line.known}
    if known and all(line.values[0] == line.values[-1] == 1 for line in known.values()):
        words = "All GPUs of a type were as fast, and no job spanned nodes that slow it."
        return empty_figure(scheme, "No job was slowed by its place", words, height=height)
    if not known:
        return empty_figure(scheme, nothing, remedy, height=height)
    drawn = cdf(known, x=SLOWDOWN, scheme=scheme, height=height)
    return drawn.update_xaxes(rangemode="normal")
