"""Figures of a live cluster's fairness: rho by tenant, shares deserved and actual, Jain's index.

The tenants with the largest shares have lines of their own, all others one together. The page has
one legend for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from frontend.figures.links import leads_to, zooms
from frontend.routing import path_to
from maat.api.fairness import FEW_JOBS, SharePointOut, SharesOut, TenantRhoOut, TenantShareOut
from maat.colours import DASHES, SERIES
from maat.figures.base import empty_figure, figure, rule, step_line, thinned
from maat.figures.texts import escape
from maat.figures.theme import palette

OTHERS = "other tenants"
MOST_TENANTS = 5  # lines that a chart can tell apart, besides that of the others
NAME_CHARACTERS = 20
MARKS = 8  # of a line: they tell it from others without its colour
SYMBOLS = "●■◆✚✖▲▼"
"""What Plotly draws for its symbols 0 to 6, as letters of a legend."""
_DAY_MS = 86_400_000
_OPEN = 100  # added to a symbol of Plotly: the same one, not filled
_DONE = "It shows once a job has ended and its rho is worked out."


@dataclass(frozen=True, slots=True)
class Look:
    """How a tenant is drawn: never by hue alone."""

    colour: str
    dash: str
    symbol: int


@dataclass(frozen=True, slots=True)
class _Line:
    """A distribution of rho: `share` of the jobs have at most `rho`."""

    tenant: str | None
    jobs: int
    rho: Sequence[float]
    share: Sequence[float]


def name_of(tenant: str | None) -> str:
    """The tenant's name; of all others together, what they are."""
    return OTHERS if tenant is None else tenant


def important(shares: SharesOut | None, rho: Sequence[TenantRhoOut]) -> list[str]:
    """Return the tenants that have lines of their own: those of the largest shares, then jobs.

    One more than MOST_TENANTS, where nobody would be left for the others. `shares`: None if they
    could not be loaded.
    """
    whole = [] if shares is None or shares["whole"] is None else shares["whole"]["tenants"]
    by_share = sorted(whole, key=lambda o: (-max(o["actual"], o["deserved"]), -o["actual"]))
    by_jobs = sorted(rho, key=lambda one: -one["figures"]["jobs"])
    names = dict.fromkeys(one["tenant"] for one in (*by_share, *by_jobs))
    named = [name for name in names if name is not None]
    alone = len(named) <= MOST_TENANTS + 1 and len(names) == len(named)
    return named if alone else named[:MOST_TENANTS]


def looks_of(tenants: Sequence[str], scheme: str | None) -> dict[str | None, Look]:
    """The look of every tenant, the same in all figures of a page; the others together are grey."""
    looks: dict[str | None, Look] = {
        name: Look(SERIES[i % len(SERIES)], DASHES[i % len(DASHES)], i % len(SERIES))
        for i, name in enumerate(sorted(tenants))
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

    Tenants of few jobs are points: a line would look too exact. Without a look a tenant is one of
    the others.
    """
    if not tenants:
        return empty_figure(scheme, "No finish-time fairness yet", _DONE, height=height)
    drawn = figure(scheme, x="Finish-time fairness rho", y="Share of jobs", height=height)
    for line in _lines(tenants, looks):
        look = looks[line.tenant]
        many = f"%{{y:.0%}} of {line.jobs} jobs have rho up to %{{x:.3g}}"
        hover = f"{escape(name_of(line.tenant))}: {many}<extra></extra>"
        if line.jobs < FEW_JOBS:
            trace = go.Scatter(
                name=_short(line.tenant),
                x=line.rho,
                y=line.share,
                mode="markers",
                marker={"size": 8, "color": look.colour, "symbol": look.symbol},
                hovertemplate=hover,
            )
        else:
            trace = step_line(
                "",
                [line.rho[0], *line.rho],
                [0.0, *line.share],
                colour=look.colour,
                dash=look.dash,
                hovertemplate=hover,
            )
            _mark(trace, look, name=_short(line.tenant))
        leads_to(trace, [_report_of(line.tenant)] * len(trace.x))
        drawn.add_trace(trace)
    drawn.update_yaxes(range=[0, 1.04], tickformat=".0%")
    drawn.update_xaxes(rangemode="tozero")
    drawn.update_layout(hovermode="closest")
    rule(drawn, scheme, x=1, text="rho = 1")
    return drawn


def shares_figure(
    found: SharesOut, looks: Mapping[str | None, Look], *, scheme: str | None, height: int = 320
) -> go.Figure:
    """Step lines: cluster time x share of the GPUs, per tenant: actual solid, deserved dotted.

    Without a look a tenant is one of the others.
    """
    points, whole = found["points"], found["whole"]
    if whole is None or not whole["tenants"]:
        return empty_figure(
            scheme,
            "No shares yet",
            "They show once a job has been submitted in this period.",
            height=height,
        )
    drawn = figure(
        scheme, x="Cluster time", y="Share of GPUs in service", height=height, two_lines=True
    )
    known = {one["tenant"] for one in whole["tenants"]}
    others = [None] if known - looks.keys() or None in known else []
    for tenant in (*sorted(name for name in known & looks.keys() if name is not None), *others):
        look, name = looks[tenant], name_of(tenant)
        for what, dash, width in (("deserved", "dot", 1.5), ("actual", "solid", 2)):
            values = [_share_of(point, tenant, what, looks) for point in points]
            line = step_line(
                "",
                [point["from"] for point in points] + [points[-1]["to"]],
                [*values, values[-1]],
                colour=look.colour,
                dash=dash,
                width=width,
                hovertemplate=f"%{{y:.0%}} {escape(name)}, {what}<extra></extra>",
            )
            is_actual = what == "actual"
            label = _short(tenant) if is_actual else f"{_short(tenant)}, deserved"
            _mark(line, look, name=label, is_open=not is_actual)
            drawn.add_trace(leads_to(line, [_report_of(tenant)] * len(line.x)))
    drawn.update_yaxes(rangemode="tozero", tickformat=".0%")
    _short_dates(drawn)
    return zooms(drawn)


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
    drawn = figure(scheme, x="Cluster time", y="Jain's index", height=height, two_lines=True)
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
    _short_dates(drawn)
    return zooms(drawn)


def _short_dates(drawn: go.Figure) -> None:
    """Write few dates at the axis of time, and short ones: two charts stand side by side."""
    stops = [
        {"dtickrange": [None, _DAY_MS - 1], "value": "%H:%M\n%-d %b"},
        {"dtickrange": [_DAY_MS, "M1"], "value": "%-d %b"},
        {"dtickrange": ["M1", None], "value": "%b %Y"},
    ]
    drawn.update_xaxes(tickangle=0, nticks=5, tickformatstops=stops)


def _report_of(tenant: str | None) -> str | None:
    """The tenant's report; of several tenants together there is none."""
    return None if tenant is None else path_to("/reports", tenant=tenant)


def _share_of(
    point: SharePointOut, tenant: str | None, what: str, looks: Mapping[str | None, Look]
) -> float:
    """Return a tenant's share; of None, the sum of those that have no line of their own."""
    own: list[TenantShareOut] = [
        one
        for one in point["tenants"]
        if one["tenant"] == tenant or (tenant is None and one["tenant"] not in looks)
    ]
    return sum(one["deserved"] if what == "deserved" else one["actual"] for one in own)


def _lines(tenants: Sequence[TenantRhoOut], looks: Mapping[str | None, Look]) -> Iterator[_Line]:
    """Yield the distribution of each tenant with a look, then that of all others together."""
    rest = [one for one in tenants if one["tenant"] is None or one["tenant"] not in looks]
    for one in tenants:
        if one not in rest and one["cdf"]:
            rho, share = ([point[key] for point in one["cdf"]] for key in ("rho", "share"))
            yield _Line(one["tenant"], one["figures"]["jobs"], rho, share)
    if any(one["cdf"] for one in rest):
        yield _together(rest)


def _together(tenants: Sequence[TenantRhoOut]) -> _Line:
    """Return the distribution of the jobs of several tenants, as exact as theirs are."""
    steps: list[tuple[float, float]] = []
    for one in tenants:
        before = 0.0
        for point in one["cdf"]:
            steps.append((point["rho"], (point["share"] - before) * one["figures"]["jobs"]))
            before = point["share"]
    steps.sort()
    jobs, counted = sum(many for _, many in steps), 0.0
    shares = []
    for _, many in steps:
        counted += many
        shares.append(min(counted / jobs, 1.0))
    kept = thinned(steps)
    return _Line(None, round(jobs), [steps[i][0] for i in kept], [shares[i] for i in kept])


def _mark(line: go.Scatter, look: Look, *, name: str, is_open: bool = False) -> None:
    """Name a line, and put some of its tenant's symbols on it."""
    symbol = look.symbol + (_OPEN if is_open else 0)
    marker = {"symbol": symbol, "size": 7, "color": look.colour, "maxdisplayed": MARKS}
    line.update(name=name, mode="lines+markers", marker=marker)


def _short(tenant: str | None) -> str:
    name = name_of(tenant)
    return escape(name if len(name) <= NAME_CHARACTERS else f"{name[: NAME_CHARACTERS - 1]}…")
