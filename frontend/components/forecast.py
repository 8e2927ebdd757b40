"""Forecast times in words and lines, for a job's page and the submit form."""

from __future__ import annotations

from datetime import datetime

from dash import html
from dash.development.base_component import Component

from frontend.components.states import gpu_chip
from frontend.formatting import ABSENT, clock, duration, parse_time, percent, plural
from maat.api.forecasts import (
    ForecastTimes,
    JobTimesOut,
    QuantilesOut,
    SlowedOut,
    grounds_in_words,
    is_first_guess,
    late_quantile,
)
from maat.vocabulary import ForecastBasis

LATER = "later than in 14 days"
LATER_BRIEFLY = "in over 14 days"
MOST_SLOWED = 8
FEW_DRAWS = 5  # of fewer, nothing is usual
P90 = "P90"


def about(times: QuantilesOut, draws: int) -> str:
    """`about 20 Nov 14:20 (by 15:05 at P90)`: the day once, if it is the same.

    Of fewer than nine draws, the second time is less than a P90, and named what it is; one draw is
    a first guess.
    """
    early, late = parse_time(times["p50_at"]), parse_time(times["p90_at"])
    if early is None:
        return LATER
    if is_first_guess(draws):
        return f"about {short_time(times['p50_at'])} (a first guess)"
    by = LATER if late is None else f"by {short_time(times['p90_at'], beside=times['p50_at'])}"
    return f"about {short_time(times['p50_at'])} ({by} at {late_quantile(draws)})"


def short_time(text: str | None, *, beside: str | None = None) -> str:
    """A time to the minute, without its day if that is the other's."""
    moment, other = parse_time(text), parse_time(beside)
    if moment is None:
        return clock(text)
    if other is not None and moment.date() == other.date():
        return f"{moment:%H:%M}"
    return f"{moment.day} {moment:%b %H:%M}"


def expected(times: JobTimesOut | None) -> str:
    """`starts 14:20–15:05`, `ends 23:50–25 Nov`: P50 to P90; the day where it is another one.

    A guess is marked, and a forecast of too few draws for a P90: `ends 14:20–15:05 (first)`.
    """
    if times is None:
        return ABSENT
    if times["basis"] == ForecastBasis.GUESS:
        return f"{_brief_times(times)} (guess)"
    return _brief_times(times) + ("" if late_quantile(times["draws"]) == P90 else " (first)")


def _brief_times(times: JobTimesOut) -> str:
    when = times["end"] if times["start"] is None else times["start"]
    verb = "ends" if times["start"] is None else "starts"
    early, late = parse_time(when["p50_at"]), parse_time(when["p90_at"])
    if early is None:
        return f"{verb} in > 14 d"
    if late is None:
        return f"{verb} {_brief(early, times)} or later"
    first, last = _brief(early, times), _brief(late, times)
    return f"{verb} {first}" if first == last else f"{verb} {first}–{last}"


def expected_exact(times: JobTimesOut | None) -> str | None:
    """Start and end in words, and when they were worked out."""
    if times is None:
        return None
    said = words(times, times["draws"])
    made = f"{rests_on(times['draws'])}, at {clock(times['made_at'])}, cluster time."
    return f"{said} {grounds_in_words(times['basis'], times['precedents'])} {made}"


def rests_on(draws: int | None) -> str:
    """`From 29 draws`; of few, that they are too few for a P90."""
    if draws is None:
        return ""
    noun = "draw" if draws == 1 else "draws"
    few = "" if late_quantile(draws) == P90 else " so far, too few for a P90"
    return f"From {draws} {noun}{few}"


def _brief(moment: datetime, times: JobTimesOut) -> str:
    made = parse_time(times["made_at"])
    same_day = made is not None and made.date() == moment.date()
    return f"{moment:%H:%M}" if same_day else f"{moment.day} {moment:%b}"


def words(times: ForecastTimes | JobTimesOut, draws: int) -> str:
    """`Starts about ... It ends about ...`"""
    if times["start"] is None:
        return f"Ends {about(times['end'], draws)}."
    return f"Starts {about(times['start'], draws)}. Ends {about(times['end'], draws)}."


def allocations(times: ForecastTimes) -> Component:
    """The GPUs that the job would hold over time, in the most ordinary course.

    None if that has no start: what a single draw gives then contradicts the words above it.
    """
    if times["start"] is not None and times["start"]["p50_at"] is None:
        return html.Div()
    rows = [
        html.Li(
            [
                html.Span(f"{short_time(one['from_at'])} ", className="caption"),
                gpu_chip(one["gpu_type"]) if one["gpu_type"] else "",
                html.Span(f" × {one['gpu_count']}" if one["gpu_count"] else "no GPUs"),
            ],
            className="on-a-line",
        )
        for one in times["allocations"][:6]
    ]
    return html.Ul(rows, className="remedies") if rows else html.Div()


def slowed_lines(slowed: list[SlowedOut], draws: int) -> Component:
    """Who would end later or earlier, the most first."""
    if not slowed:
        return html.Div("No other job ends earlier or later.", className="hint")
    rows = [html.Li(_slowed(one, draws)) for one in slowed[:MOST_SLOWED]]
    left = len(slowed) - len(rows)
    more = [html.Li(f"and {left} other {'job' if left == 1 else 'jobs'}")] if left else []
    return html.Ul([*rows, *more], className="remedies")


def _slowed(one: SlowedOut, draws: int) -> str:
    """`train-7 usually ends 2 min later, at P90 9 min later; later in 70 % of the draws`"""
    name = "another tenant's job" if one["name"] is None else one["name"]
    usual, late = moved(one["p50_seconds"]), moved(one["p90_seconds"])
    if draws < FEW_DRAWS:
        return f"{name} ends {usual} in {plural(draws, 'draw')} so far"
    also = "" if late == usual else f", at {late_quantile(draws)} {late}"
    share = f"later in {percent(one['share'])} of the draws" if one["share"] else "never later"
    return f"{name} usually ends {usual}{also}; {share}"


def moved(seconds: float) -> str:
    if abs(seconds) < 1.0:
        return "as before"
    return f"{duration(abs(seconds))} {'later' if seconds > 0 else 'earlier'}"
