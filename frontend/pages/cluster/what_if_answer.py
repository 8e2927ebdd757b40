"""The answer to a question of the cluster: a verdict, then jobs and sums before and after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dash import dcc, html
from dash.development.base_component import Component

from frontend.components.cards import scrolls
from frontend.components.forecast import FEW_DRAWS, LATER_BRIEFLY, moved, rests_on, short_time
from frontend.components.names import cut_name
from frontend.components.question import CANCELLED
from frontend.formatting import ABSENT, count, duration, gpus, percent, plural
from maat.api.forecasts import (
    MOST_SLOWED,
    MOST_TIMED,
    ForecastOut,
    ForecastTimes,
    QuantilesOut,
    SideOut,
    SlowedOut,
    late_quantile,
    means_in_words,
)
from maat.api.move_words import bound_words

_LEAST_SECONDS = 1.0  # by which a job ends earlier or later
_MOST_SPANS = 4
_ANONYMOUS = "another tenant's job"


def _last_end(side: SideOut) -> str:
    return LATER_BRIEFLY if side["later"] else duration(side["last_end_seconds"])


_SIDES: dict[str, Callable[[SideOut], str]] = {
    "Policy": lambda side: side["policy"] or ABSENT,
    "Placer": lambda side: side["placer"] or ABSENT,
    "Bound on moves": lambda side: bound_words(
        side["least_stay_seconds"], side["most_moves_per_hour"]
    ),
    "Jobs": lambda side: count(side["jobs"]),
    "Waiting jobs start after, on average": lambda side: duration(side["mean_start_seconds"]),
    "The same jobs end after": lambda side: duration(side["mean_end_of_waiting_seconds"]),
    "All jobs end after, on average": lambda side: duration(side["mean_end_seconds"]),
    "Last end after": _last_end,
    "End later than in 14 days": lambda side: count(side["later"]),
}


def parts_of(found: ForecastOut) -> list[Component]:
    """The verdict, why figures may surprise, and both sides."""
    before, after, draws = found["before"], found["after"], found["draws"]
    if before is None or after is None or draws is None:
        return [html.Div(CANCELLED, className="hint")]
    slowed = found["slowed"] or []
    return [
        html.Div(verdict(slowed, before, draws), className="sentence"),
        *(html.Div(note, className="hint") for note in found["notes"] or ()),
        *_jobs(slowed, draws, found["made_at"]),
        scrolls("what-if-sides", _sides(before, after), label="All jobs, before and after"),
        *([html.Div(words, className="hint")] if (words := means_in_words(after)) else []),
        html.Div(f"{rests_on(draws)}, as of now.", className="hint"),
    ]


def verdict(slowed: list[SlowedOut], before: SideOut, draws: int) -> str:
    """`Of 12 jobs, 3 end earlier and 1 later. Most slowed: train-7, 12 min later.`"""
    clear = [one for one in slowed if _is_clear(one)]
    later = [one for one in clear if one["p50_seconds"] >= _LEAST_SECONDS]
    earlier = [one for one in clear if one["p50_seconds"] <= -_LEAST_SECONDS]
    jobs = plural(before["jobs"], "job")
    few = draws < FEW_DRAWS
    sure = "" if few else "usually "
    of = f"In {plural(draws, 'draw')} so far, of {jobs}" if few else f"Of {jobs}"
    if not later and not earlier:
        return f"{of}, none {sure}ends earlier or later."
    told = f"{of}, {_many(earlier)} {sure}{_end(earlier)} earlier and {_many(later)} later."
    if later:
        return f"{told} Most slowed: {_most(later[0])}."
    return f"{told} Most hastened: {_most(earlier[-1])}."


def _is_clear(one: SlowedOut) -> bool:
    """Whether the ends and their difference, each a P50 of its own, point the same way."""
    before, after = (
        times and times["end"]["p50_seconds"] for times in (one["before"], one["after"])
    )
    return before is None or after is None or (after - before) * one["p50_seconds"] >= 0


def _many(some: list[SlowedOut]) -> str:
    """An answer names a limited number of jobs; then there may be more."""
    least = "at least " if len(some) >= MOST_SLOWED else ""
    return f"{least}{count(len(some))}" if some else "none"


def _end(some: list[SlowedOut]) -> str:
    return "end" if len(some) > 1 else "ends"


def _most(one: SlowedOut) -> str:
    return f"{one['name'] or _ANONYMOUS}, {moved(one['p50_seconds'])}"


def _jobs(slowed: list[SlowedOut], draws: int, now: str | None) -> list[Component]:
    """The most slowed jobs, then the most hastened ones."""
    shown = slowed[:MOST_TIMED] + slowed[MOST_TIMED:][-MOST_TIMED:]
    if not shown:
        return []
    late = late_quantile(draws)
    heads = ("Job", "Starts", "Ends", "Difference", f"At {late}", "Later in", "Holds")
    words = (
        "Jobs that end earlier or later, the most slowed first. As it is → if so; P50, cluster "
        "time. Difference: of the two ends in one draw, its P50 over the draws; the ends of two "
        "different draws may lie further apart. Unclear: the two point different ways."
    )
    rows = [_job(one, now, heads) for one in shown]
    table = html.Table(
        [html.Caption(words), _head(heads), html.Tbody(rows)], className="plain-table stacks"
    )
    left = len(slowed) - len(shown)
    more = [html.Div(f"and {plural(left, 'other job')}", className="hint")] if left else []
    return [scrolls("what-if-jobs", table, label="Jobs that end earlier or later"), *more]


def _job(one: SlowedOut, now: str | None, heads: Sequence[str]) -> html.Tr:
    before, after = one["before"], one["after"]
    name: Component | str = _ANONYMOUS if one["name"] is None else cut_name(one["name"])
    if one["name"] is not None and isinstance(name, str):
        name = dcc.Link(name, href=f"/jobs/{one['job_id']}")
    cells = (
        _then(_start(before, now), _start(after, now)),
        _then(_end_of(before, now), _end_of(after, now)),
        moved(one["p50_seconds"]) if _is_clear(one) else "unclear",
        *(moved(one["p90_seconds"]), percent(one["share"])),
        _then(held_words(before, now), held_words(after, now)),
    )
    named = zip(heads[1:], cells, strict=True)
    return html.Tr(
        [
            html.Th(name, scope="row"),
            *(html.Td(cell, className="wraps", **_under(head)) for head, cell in named),
        ]
    )


def _under(head: str) -> dict[str, Any]:
    """The head of a cell, where the screen is too narrow for columns."""
    return {"data-head": head}


def _then(before: str, after: str) -> Component | str:
    """Before and after, each on one line where there is room; once if they are the same."""
    if before == after:
        return before
    return html.Span([html.Span(before), " ", html.Span(f"→ {after}")], className="then")


def _start(times: ForecastTimes | None, now: str | None) -> str:
    if times is None:
        return ABSENT
    return "has started" if times["start"] is None else _at(times["start"], now)


def _end_of(times: ForecastTimes | None, now: str | None) -> str:
    return ABSENT if times is None else _at(times["end"], now)


def _at(when: QuantilesOut, now: str | None) -> str:
    return LATER_BRIEFLY if when["p50_at"] is None else short_time(when["p50_at"], beside=now)


def held_words(times: ForecastTimes | None, now: str | None) -> str:
    """`as now, 4 × a100 from 14:20, nothing from 15:05`: in one draw, the first changes."""
    if times is None:
        return ABSENT
    spans = ["as now"] if times["start"] is None else []
    for one in times["allocations"]:
        held = gpus(one["gpu_count"], one["gpu_type"]) if one["gpu_type"] else "nothing"
        spans.append(f"{held} from {short_time(one['from_at'], beside=now)}")
    return (", ".join(spans[:_MOST_SPANS]) + (", …" if len(spans) > _MOST_SPANS else "")) or ABSENT


def _sides(before: SideOut, after: SideOut) -> Component:
    rows = [
        html.Tr([html.Th(words, scope="row"), html.Td(of(before)), html.Td(of(after))])
        for words, of in _SIDES.items()
    ]
    caption = html.Caption("All jobs that have not ended")
    head = _head(("", "As it is", "If so"))
    return html.Table([caption, head, html.Tbody(rows)], className="plain-table")


def _head(names: tuple[str, ...]) -> html.Thead:
    return html.Thead(html.Tr([html.Th(name, scope="col") for name in names]))
