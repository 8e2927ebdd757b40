"""Policies against a baseline: JCT ratios with their confidence intervals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import plotly.graph_objects as go

from frontend.figures.links import leads_to, part_address
from maat.figures.base import empty_figure
from maat.figures.data import Estimate
from maat.figures.ratios import ratios


def ratio_figure(comparison: Mapping[str, Any], *, scheme: str | None) -> go.Figure:
    """One row per contestant: geometric mean of JCT over the baseline's, with its 95 % interval.

    The axis is logarithmic; 1 is a dotted line.
    """
    paired = [row for row in comparison["paired"] if row["ratio"]["low"] is not None]
    names = [contestant["name"] for contestant in comparison["contestants"]]
    if not paired:
        return empty_figure(
            scheme,
            "Nothing to set against each other yet",
            "It takes two policies that have ended, or several seeds of one trace.",
            height=200,
        )
    drawn = ratios(
        {names[row["contestant"]]: _estimate(row["ratio"]) for row in paired},
        x=f"JCT relative to {names[comparison['baseline']]}, geometric mean over jobs",
        scheme=scheme,
    )
    for row, trace in zip(paired, drawn.data, strict=True):
        over = f", {row['jobs']} jobs in {row['runs']} runs<extra></extra>"
        trace.hovertemplate = trace.hovertemplate.replace("<extra></extra>", over)
        leads_to(trace, [part_address(row_id(row["contestant"]))])
    return drawn


def _estimate(ratio: Mapping[str, float]) -> Estimate:
    return Estimate(ratio["estimate"], ratio["low"], ratio["high"])


def row_id(contestant: int) -> str:
    """The id of a contestant's row in the table of differences; its ratio leads there."""
    return f"contest-row-{contestant}"
