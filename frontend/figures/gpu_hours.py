"""GPU-hours: by day and for whom, by day and to what effect, and how far each GPU type was used."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import plotly.graph_objects as go

from frontend.formatting import percent
from frontend.routing import path_to
from maat.api.usage import DayUse, TypeUse, UsageOut, UsageRow
from maat.colours import OKABE_ITO, SERIES, gpu_colour
from maat.figures.base import LEGEND_ABOVE, empty_figure, figure
from maat.figures.texts import escape
from maat.figures.theme import palette, translucent

REST = "others"
MOST_DAYS_NAMED = 10
MOST_ROWS = 6  # of a bar, besides the others: as many as there are colours
NAME_CHARACTERS = 14
LEAST = 1e-6  # GPU-hours: less is a rounding of sums
NOTHING_USED = (
    "No GPU was held in this period",
    "Choose a period in which jobs ran, or submit one.",
)
# Parts of a day's capacity; what is lost, and restarts, have a pattern too.
USEFUL, INEFFICIENT, LOST, RESTARTS = (OKABE_ITO[index] for index in (2, 4, 3, 1))


def hours_by_row_figure(found: UsageOut, *, scheme: str | None) -> go.Figure:
    """Stacked bars: day x GPU-hours allocated, one for each row of the report."""
    rows, singles = _drawn_rows(found)
    if not rows:
        return empty_figure(scheme, *NOTHING_USED)
    drawn = figure(scheme, x="Day (UTC, cluster time)", y="GPU-hours allocated", two_lines=True)
    days = [day["day"] for day in found["days"]]
    # By name, as the page of fairness has the colours of tenants.
    places = {name: place for place, name in enumerate(sorted(name for name, _ in rows[:singles]))}
    for index, (name, hours) in enumerate(rows):
        place = places.get(name, index) % len(SERIES)
        colour = gpu_colour(name) if found["by"] == "gpu_type" else SERIES[place]
        is_rest = index >= singles
        drawn.add_trace(
            go.Bar(
                name=escape(
                    name if len(name) <= NAME_CHARACTERS else f"{name[: NAME_CHARACTERS - 1]}…"
                ),
                x=days,
                y=hours,
                marker={
                    "color": palette(scheme).drained if is_rest else colour,
                    "pattern": {"shape": "/" if is_rest and name == REST else ""},
                    "line": {"width": 0},
                },
                hovertemplate="%{y:,.1f} GPU-h " + escape(name) + "<extra></extra>",
                customdata=[
                    None if is_rest else _address_of(found["by"], name, day) for day in days
                ],
            )
        )
    _as_days(drawn, found["days"])
    return drawn


def effect_figure(found: UsageOut, *, scheme: str | None) -> go.Figure:
    """Stacked bars: day x GPU-hours, parted into useful, inefficient, lost, restarts and idle."""
    days = found["days"]
    if not any(day["capacity_gpu_hours"] or day["figures"]["allocated_gpu_hours"] for day in days):
        return empty_figure(scheme, "No round was made in this period", "Choose a later period.")
    drawn = figure(scheme, x="Day (UTC, cluster time)", y="GPU-hours", two_lines=True)
    idle = palette(scheme).free
    for name, hours, colour, pattern in (
        ("useful", [day["figures"]["useful_gpu_hours"] for day in days], USEFUL, ""),
        ("used, not useful", [_inefficient(day) for day in days], INEFFICIENT, ""),
        ("lost to failures", [day["figures"]["lost_gpu_hours"] for day in days], LOST, "x"),
        ("restarts and profiles", [_overhead(day) for day in days], RESTARTS, "/"),
        ("idle", [_idle(day) for day in days], idle, ""),
    ):
        drawn.add_trace(
            go.Bar(
                name=name,
                x=[day["day"] for day in days],
                y=hours,
                marker={
                    "color": colour,
                    "pattern": {"shape": pattern},
                    "line": {"width": 0},
                },
                hovertemplate="%{y:,.1f} GPU-h " + name + "<extra></extra>",
                customdata=[_day_address(day["day"]) for day in days],
            )
        )
    _as_days(drawn, days)
    return drawn


def utilisation_figure(types: Sequence[TypeUse], *, scheme: str | None) -> go.Figure:
    """Stacked bars: GPU type x share of its GPU-hours: allocated, idle for a reason, idle."""
    known = [one for one in types if one["capacity_gpu_hours"] > 0]
    if not known:
        return empty_figure(scheme, "No round was made in this period", "Choose a later period.")
    drawn = figure(scheme, x="GPU type", y="Share of GPU-hours")
    names = [one["gpu_type"] for one in known]
    ink = palette(scheme)
    parts: list[tuple[str, list[float], object, str]] = [
        (
            "allocated",
            [_share(one, one["allocated_gpu_hours"]) for one in known],
            [gpu_colour(name) for name in names],
            "",
        ),
        (
            "free, reserved",
            [_share(one, _reserved(one)) for one in known],
            translucent(OKABE_ITO[5], 0.8),
            "/",
        ),
        (
            "free, fragmented",
            [_share(one, one["fragmented_gpu_hours"]) for one in known],
            translucent(OKABE_ITO[3], 0.8),
            "x",
        ),
        ("idle", [_share(one, _plain_idle(one)) for one in known], ink.free, ""),
    ]
    for name, shares, colour, pattern in parts:
        drawn.add_trace(
            go.Bar(
                name=name,
                x=names,
                y=shares,
                marker={"color": colour, "pattern": {"shape": pattern}, "line": {"width": 0}},
                hovertemplate="%{y:.1%} " + name + "<extra></extra>",
                customdata=[path_to("/cluster", q=of_type) for of_type in names],
            )
        )
    for one in known:
        drawn.add_annotation(
            x=one["gpu_type"],
            y=1.0,
            yanchor="bottom",
            text=percent(one["utilisation"]),
            showarrow=False,
            font={"size": 12, "color": ink.text},
        )
    drawn.update_yaxes(tickformat=".0%", range=[0, 1.08])
    drawn.update_xaxes(type="category")
    drawn.update_layout(barmode="stack", showlegend=True, margin={"t": LEGEND_ABOVE}, bargap=0.45)
    return drawn


def _address_of(by: str, name: str, day: str) -> str:
    """Return what a bar stands for: the jobs of its row where a list of them can be asked for.

    Otherwise the use of its day.
    """
    if by in ("gpu_type", "model", "label"):
        return path_to("/jobs", **{by: name})
    if by == "tenant":
        return path_to("/reports", tenant=name, **{"from": day, "to": day})
    return _day_address(day)


def _day_address(day: str) -> str:
    return f"?from={day}&to={day}"


def _drawn_rows(found: UsageOut) -> tuple[list[tuple[str, list[float]]], int]:
    """Return the rows to draw, and how many of them are single ones.

    After these come all others in one, and other tenants. Labels overlap: of them there is no sum.
    """
    known = [
        (row["name"], row["allocated_gpu_hours_by_day"])
        for row in found["rows"]
        if row["allocated_gpu_hours_by_day"] is not None
    ]
    drawn = [(name, hours) for name, hours in known if any(hours)]
    if len(drawn) > MOST_ROWS + 1 or len(known) < len(found["rows"]):
        drawn = drawn[:MOST_ROWS]
    singles = len(drawn)
    others = found["others"]
    if found["by"] != "label":
        rest = _rest(found, [hours for _, hours in drawn], others)
        if any(hours > LEAST for hours in rest):
            drawn.append((REST, rest))
    of_others = None if others is None else others["allocated_gpu_hours_by_day"]
    if of_others is not None and any(of_others):
        drawn.append(("other tenants", of_others))
    return drawn, singles


def _rest(
    found: UsageOut, drawn: Sequence[Sequence[float]], others: UsageRow | None
) -> list[float]:
    """Return by day what the rows used that are not drawn."""
    beside = [*drawn]
    if others is not None and others["allocated_gpu_hours_by_day"] is not None:
        beside.append(others["allocated_gpu_hours_by_day"])
    return [
        max(day["figures"]["allocated_gpu_hours"] - sum(hours[at] for hours in beside), 0.0)
        for at, day in enumerate(found["days"])
    ]


def _inefficient(day: DayUse) -> float:
    figures = day["figures"]
    used, lost = figures["used_gpu_hours"], figures["lost_gpu_hours"]
    return max(used - lost - figures["useful_gpu_hours"], 0.0)


def _overhead(day: DayUse) -> float:
    return day["figures"]["restart_gpu_hours"] + day["figures"]["profile_gpu_hours"]


def _idle(day: DayUse) -> float:
    return max(day["capacity_gpu_hours"] - day["figures"]["allocated_gpu_hours"], 0.0)


def _share(one: TypeUse, hours: float) -> float:
    return hours / one["capacity_gpu_hours"]


def _reserved(one: TypeUse) -> float:
    """Idle hours may be reserved and fragmented at once: here they count as fragmented."""
    left = one["idle_gpu_hours"] - one["fragmented_gpu_hours"]
    return max(min(one["reserved_idle_gpu_hours"], left), 0.0)


def _plain_idle(one: TypeUse) -> float:
    return max(one["idle_gpu_hours"] - one["fragmented_gpu_hours"] - _reserved(one), 0.0)


def _as_days(drawn: go.Figure, days: Sequence[DayUse]) -> None:
    """Stack the bars, and say of a day of which not all is told that it is partial."""
    drawn.update_layout(barmode="stack", showlegend=True, margin={"t": LEGEND_ABOVE}, bargap=0.25)
    every = -(-len(days) // MOST_DAYS_NAMED)
    named = [day for at, day in enumerate(days) if at % every == 0 or day["is_partial"]]
    drawn.update_xaxes(
        type="category",
        tickmode="array",
        tickvals=[day["day"] for day in named],
        ticktext=[_day_text(day) for day in named],
    )


def _day_text(day: DayUse) -> str:
    shown = date.fromisoformat(day["day"]).strftime("%d %b").lstrip("0")
    return f"{shown}<br>partial" if day["is_partial"] else shown
