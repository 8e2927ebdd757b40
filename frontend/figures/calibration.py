"""Figures of the calibration of forecasts: quantiles that held, and promised against actual."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from frontend.figures.links import job_address, leads_to
from frontend.routing import path_to
from maat.api.forecasts import CalibrationBinOut, PromiseOut
from maat.colours import SERIES
from maat.figures.base import LEGEND_ABOVE, empty_figure, figure
from maat.figures.theme import palette

LEAST_PROMISES = 20
_SYMBOLS = {"start": "circle", "end": "diamond"}
_COLOURS = dict(zip(_SYMBOLS, SERIES, strict=False))
_JOBS = {
    "start": path_to("/jobs", state=["running", "succeeded"]),
    "end": path_to("/jobs", state=["succeeded"]),
}
"""The jobs that a share is of, by what they were promised."""
NONE_DUE = "No forecast has come due yet"
WHEN_DUE = "It shows once the time of a promise has come: an end, hours after its submission."


def reliability_figure(
    bins: Sequence[CalibrationBinOut], *, scheme: str | None, height: int = 320
) -> go.Figure:
    """Promised quantile x share of promises that were held, with the line where both agree."""
    known = [one for one in bins if one["held"] is not None]
    if not known:
        return empty_figure(scheme, NONE_DUE, WHEN_DUE, height=height)
    drawn = figure(scheme, x="Promised probability", y="Share of promises held", height=height)
    drawn.add_trace(_diagonal([0.0, 1.0], scheme, "held as promised"))
    for what, symbol in _SYMBOLS.items():
        mine = [one for one in known if one["quantity"] == what]
        trace = go.Scatter(
            name=f"{what} of jobs",
            x=[one["quantile"] for one in mine],
            y=[one["held"] for one in mine],
            text=[one["promises"] for one in mine],
            mode="markers",
            marker={"size": 11, "symbol": symbol, "color": _COLOURS[what]},
            cliponaxis=False,
            hovertemplate="%{y:.0%} of %{text} promises<extra></extra>",
        )
        drawn.add_trace(leads_to(trace, [_JOBS[what]] * len(mine)))
    drawn.update_xaxes(range=[0, 1.04], tickformat=".0%")
    drawn.update_yaxes(range=[0, 1.04], tickformat=".0%")
    drawn.update_layout(showlegend=True, hovermode="closest", margin={"t": LEGEND_ABOVE})
    return drawn


def promised_figure(
    promises: Sequence[PromiseOut], *, scheme: str | None, height: int = 320
) -> go.Figure:
    """Promised hours to the end (P50) x hours that it took, with the line where both agree."""
    known = [
        (one["end_p50_seconds"] / 3600, one["end_seconds"] / 3600, job_address(one["job_id"]))
        for one in promises
        if one["end_p50_seconds"] is not None and one["end_seconds"] is not None
    ]
    if not known:
        return empty_figure(scheme, NONE_DUE, WHEN_DUE, height=height)
    most = max(max(promised, actual) for promised, actual, _ in known)
    drawn = figure(
        scheme, x="Promised until its end, P50 (h)", y="Actually until its end (h)", height=height
    )
    drawn.add_trace(_diagonal([0.0, most], scheme, "as promised"))
    points = go.Scatter(
        name="a promise",
        x=[promised for promised, _, _ in known],
        y=[actual for _, actual, _ in known],
        mode="markers",
        marker={"size": 7, "color": _COLOURS["end"], "opacity": 0.6},
        cliponaxis=False,
        hovertemplate="promised %{x:.2f} h, took %{y:.2f} h<extra></extra>",
    )
    drawn.add_trace(leads_to(points, [address for _, _, address in known]))
    drawn.update_layout(showlegend=True, hovermode="closest", margin={"t": LEGEND_ABOVE})
    return drawn


def _diagonal(ends: list[float], scheme: str | None, name: str) -> go.Scatter:
    return go.Scatter(
        name=name,
        x=ends,
        y=ends,
        mode="lines",
        line={"color": palette(scheme).muted, "dash": "dot"},
        hoverinfo="skip",
    )
