"""GPUs in use by type over time, and jobs pending: what the overview opens with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from frontend.figures.links import cluster_address, zooms
from frontend.formatting import count
from maat.api.rounds import Steps
from maat.colours import gpu_colour, gpu_order
from maat.figures.areas import stacked_areas
from maat.figures.base import (
    TWO_LINES_BELOW,
    empty_figure,
    figure,
    label_or_legend,
    rule,
    step_line,
    thinned,
    whole_ticks,
)
from maat.figures.data import Series
from maat.figures.theme import palette


def usage_figure(
    used: Mapping[str, Steps],
    capacity: Mapping[str, Steps],
    rounds: Sequence[int] = (),
    *,
    scheme: str | None,
) -> go.Figure:
    """Stacked step areas: cluster time x GPUs in use, one per GPU type, under the line of all GPUs.

    `Steps`: {at, value}. `rounds`: the round of each time, which a point leads to.
    """
    types = [name for name in gpu_order(used) if used[name]["at"]]
    if not types:
        return empty_figure(
            scheme,
            "No round has run yet",
            "Submit a job, or add demo jobs: the first round shows here.",
        )
    drawn = stacked_areas(
        {name: Series(used[name]["at"], used[name]["value"]) for name in types},
        x="Cluster time",
        y="GPUs in use",
        colours={name: gpu_colour(name) for name in types},
        scheme=scheme,
    )
    drawn.update_layout(showlegend=False, margin={"t": None, "b": TWO_LINES_BELOW})
    for name, trace in zip(types, drawn.data, strict=True):
        trace.customdata = _rounds_of(rounds, thinned(used[name]["at"]))
    total = sum(float(steps["value"][-1]) for steps in capacity.values() if steps["value"])
    ends, below = {}, 0.0
    last_values = {name: float(used[name]["value"][-1]) for name in types}
    for name in types:
        ends[name] = (used[name]["at"][-1], below + last_values[name] / 2, gpu_colour(name))
        below += last_values[name]
    if total:
        rule(drawn, scheme, y=total, text=f"all {count(round(total))} GPUs")
        drawn.update_layout(yaxis_range=[0, total * 1.12])
    label_or_legend(
        drawn,
        scheme,
        ends,
        span=max(total, below, 1.0),
        x=(used[types[0]]["at"][0], used[types[0]]["at"][-1]),
    )
    return zooms(drawn)


def _rounds_of(rounds: Sequence[int], kept: Sequence[int]) -> list[str] | None:
    """Return the addresses of the rounds of the kept points; None if rounds are not known."""
    return [cluster_address(rounds[i]) for i in kept] if rounds else None


def pending_figure(
    pending: Steps, running: Steps, rounds: Sequence[int] = (), *, scheme: str | None
) -> go.Figure:
    """Step lines: cluster time x jobs, running and pending. A point leads to its round."""
    if not pending["at"] and not running["at"]:
        return empty_figure(
            scheme,
            "No round has run yet",
            "Jobs that run and jobs that wait show here, round by round.",
        )
    drawn = figure(scheme, x="Cluster time", y="Jobs of all teams", two_lines=True)
    colours = palette(scheme)
    highest, ends = 0.0, {}
    for name, steps, colour, dash in (
        ("running", running, colours.accent, "solid"),
        ("pending", pending, colours.muted, "dash"),
    ):
        if not steps["at"]:
            continue
        drawn.add_trace(
            step_line(
                name,
                steps["at"],
                steps["value"],
                colour=colour,
                dash=dash,
                customdata=_rounds_of(rounds, thinned(steps["at"])),
                hovertemplate="%{y} " + name + "<extra></extra>",
            )
        )
        ends[name] = (steps["at"][-1], float(steps["value"][-1]), colour)
        highest = max(highest, *(float(value) for value in steps["value"]))
    drawn.update_layout(yaxis={"rangemode": "tozero", **whole_ticks(highest)})
    times = running["at"] or pending["at"]
    label_or_legend(drawn, scheme, ends, span=max(highest, 1.0), x=(times[0], times[-1]))
    return zooms(drawn)
