"""Forecast times in words and lines, for a job's page and the submit form."""

from __future__ import annotations

from dash import html
from dash.development.base_component import Component

from frontend.components.states import gpu_chip
from frontend.formatting import clock, duration, parse_time, percent
from maat.api.forecasts import ForecastTimes, QuantilesOut, SideOut, SlowedOut

LATER = "later than in 14 days"
MOST_SLOWED = 8


def about(times: QuantilesOut) -> str:
    """`about 20 Nov 14:20 (by 15:05 at P90)`: the day once, if it is the same."""
    early, late = parse_time(times["p50_at"]), parse_time(times["p90_at"])
    if early is None:
        return LATER
    by = LATER if late is None else f"by {_short(times['p90_at'], beside=times['p50_at'])}"
    return f"about {_short(times['p50_at'])} ({by} at P90)"


def _short(text: str | None, *, beside: str | None = None) -> str:
    """A time to the minute, without its day if that is the other's."""
    moment, other = parse_time(text), parse_time(beside)
    if moment is None:
        return clock(text)
    if other is not None and moment.date() == other.date():
        return f"{moment:%H:%M}"
    return f"{moment.day} {moment:%b %H:%M}"


def words(times: ForecastTimes) -> str:
    """`Starts about ... It ends about ...`"""
    if times["start"] is None:
        return f"Ends {about(times['end'])}."
    return f"Starts {about(times['start'])}. Ends {about(times['end'])}."


def allocations(times: ForecastTimes) -> Component:
    """The GPUs that the job would hold over time, in the most ordinary course."""
    rows = [
        html.Li(
            [
                html.Span(f"{_short(one['from_at'])} ", className="caption"),
                gpu_chip(one["gpu_type"]) if one["gpu_type"] else "",
                html.Span(f" × {one['gpu_count']}" if one["gpu_count"] else "no GPUs"),
            ]
        )
        for one in times["allocations"][:6]
    ]
    return html.Ul(rows, className="remedies") if rows else html.Div()


def slowed_lines(slowed: list[SlowedOut]) -> Component:
    """Who would end later or earlier, the most first."""
    if not slowed:
        return html.Div("No other job ends earlier or later.", className="hint")
    rows = [html.Li(_slowed(one)) for one in slowed[:MOST_SLOWED]]
    left = len(slowed) - len(rows)
    more = [html.Li(f"and {left} other jobs")] if left else []
    return html.Ul([*rows, *more], className="remedies")


def _slowed(one: SlowedOut) -> str:
    name = "another tenant's job" if one["name"] is None else one["name"]
    seconds, late = one["p50_seconds"], one["p90_seconds"]
    how = "later" if max(seconds, late) > 0 else "earlier"
    by = f"{duration(abs(seconds))} ({duration(abs(late))} at P90)"
    return f"{name} ends {by} {how}, in {percent(one['share'])} of the draws later"


def side_words(side: SideOut) -> str:
    """`12 jobs, ending after 2 h on average, the last after 9 h`"""
    mean, last = duration(side["mean_end_seconds"]), duration(side["last_end_seconds"])
    return f"{side['jobs']} jobs, ending after {mean} on average, the last after {last}"
