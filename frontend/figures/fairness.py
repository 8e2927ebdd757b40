"""Figures of a live cluster's fairness: rho by tenant, shares deserved and actual, Jain's index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from frontend.figures.base import empty_figure, figure, rule, step_line
from frontend.figures.texts import escape
from frontend.theme import DASHES, SERIES, palette
from maat.api.fairness import SharePointOut, SharesOut, TenantRhoOut, TenantShareOut

OTHERS = "other tenants"


@dataclass(frozen=True, slots=True)
class Look:
    """How a tenant is drawn: never by hue alone."""

    colour: str
    dash: str
    symbol: int


MOST_TENANTS = 6
_DONE = "It shows once a job has ended and its ρ is worked out."


def name_of(one: TenantRhoOut | TenantShareOut) -> str:
    """The tenant's name; of those that the visitor may not see, what they are together."""
    return OTHERS if one["tenant"] is None else one["tenant"]


def looks_of(tenants: Sequence[str | None], scheme: str | None) -> dict[str | None, Look]:
    """The look of every tenant, the same in all figures of a page; all others together are grey."""
    named = sorted({one for one in tenants if one is not None})
    looks: dict[str | None, Look] = {
        name: Look(SERIES[i % len(SERIES)], DASHES[i % len(DASHES)], i % len(SERIES))
        for i, name in enumerate(named)
    }
    return looks | {None: Look(palette(scheme).muted, "longdash", len(SERIES))}


def rho_figure(
    tenants: Sequence[TenantRhoOut],
    looks: Mapping[str | None, Look],
    *,
    scheme: str | None,
    height: int = 320,
) -> go.Figure:
    """CDF: finish-time fairness rho x share of jobs, one line per tenant, with the rho = 1 rule.

    Tenants of few jobs are points: a line would look too exact.
    """
    if not tenants:
        return empty_figure(scheme, "No finish-time fairness yet", _DONE, height=height)
    drawn = figure(scheme, x="Finish-time fairness ρ", y="Share of jobs", height=height)
    largest = sorted(tenants, key=lambda one: -one["figures"]["jobs"])[:MOST_TENANTS]
    for one in sorted(largest, key=tenants.index):
        look = looks[one["tenant"]]
        x = [point["rho"] for point in one["cdf"]]
        y = [point["share"] for point in one["cdf"]]
        many = f"%{{y:.0%}} of {one['figures']['jobs']} jobs have ρ ≤ %{{x:.3g}}"
        hover = f"{escape(name_of(one))}: {many}<extra></extra>"
        if one["is_few"]:
            trace = go.Scatter(
                name=escape(name_of(one)),
                x=x,
                y=y,
                mode="markers",
                marker={"size": 8, "color": look.colour, "symbol": look.symbol},
                hovertemplate=hover,
            )
        else:
            trace = step_line(
                name_of(one),
                [x[0], *x],
                [0.0, *y],
                colour=look.colour,
                dash=look.dash,
                hovertemplate=hover,
            )
        drawn.add_trace(trace)
    drawn.update_yaxes(range=[0, 1.04], tickformat=".0%")
    drawn.update_xaxes(rangemode="tozero")
    drawn.update_layout(showlegend=True, hovermode="closest", margin={"t": 40})
    rule(drawn, scheme, x=1, text="ρ = 1")
    return drawn


def shares_figure(
    found: SharesOut, looks: Mapping[str | None, Look], *, scheme: str | None, height: int = 320
) -> go.Figure:
    """Step lines: cluster time x share of the GPUs, per tenant: actual solid, deserved dotted.

    The largest tenants; who holds least is left out where there are many.
    """
    points, whole = found["points"], found["whole"]
    if whole is None or not whole["tenants"]:
        return empty_figure(
            scheme,
            "No shares yet",
            "They show once a job has been submitted in this period.",
            height=height,
        )
    drawn = figure(scheme, x="Cluster time", y="Share of GPUs in service", height=height)
    largest = sorted(whole["tenants"], key=lambda one: -max(one["actual"], one["deserved"]))
    for tenant in largest[:MOST_TENANTS]:
        for what, dash, width in (("deserved", "dot", 1.5), ("actual", "solid", 2)):
            values = [_share_of(point, tenant["tenant"], what) for point in points]
            drawn.add_trace(
                step_line(
                    name_of(tenant) if what == "actual" else f"{name_of(tenant)}, deserved",
                    [point["from"] for point in points] + [points[-1]["to"]],
                    [*values, values[-1]],
                    colour=looks[tenant["tenant"]].colour,
                    dash=dash,
                    width=width,
                    legendgroup=name_of(tenant),
                    showlegend=what == "actual",
                    hovertemplate=f"%{{y:.0%}} {escape(name_of(tenant))}, {what}<extra></extra>",
                )
            )
    drawn.update_yaxes(rangemode="tozero", tickformat=".0%")
    drawn.update_layout(showlegend=True, margin={"t": 40})
    return drawn


def jain_figure(found: SharesOut, *, scheme: str | None, height: int = 200) -> go.Figure:
    """Step line: cluster time x Jain's index of shares; gaps where nobody had jobs."""
    known = [point for point in found["points"] if point["jain_index"] is not None]
    if not known:
        return empty_figure(
            scheme,
            "No index yet",
            "It shows once tenants have had jobs in this period.",
            height=height,
        )
    drawn = figure(scheme, x="Cluster time", y="Jain's index", height=height)
    points = found["points"]
    values = [point["jain_index"] for point in points]
    drawn.add_trace(
        step_line(
            "Jain's index",
            [point["from"] for point in points] + [points[-1]["to"]],
            [*values, values[-1]],
            colour=palette(scheme).accent,
            connectgaps=False,
            hovertemplate="%{y:.3f}<extra></extra>",
        )
    )
    drawn.update_yaxes(range=[0, 1.05])
    return drawn


def _share_of(point: SharePointOut, tenant: str | None, what: str) -> float:
    shares: Mapping[str | None, TenantShareOut] = {one["tenant"]: one for one in point["tenants"]}
    if tenant not in shares:
        return 0.0
    return shares[tenant]["deserved"] if what == "deserved" else shares[tenant]["actual"]
