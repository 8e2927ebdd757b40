"""Marks of what happened to a job, for its timeline: each kind has a sign and a colour."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import plotly.graph_objects as go

from frontend.components.events import details, event_words, with_state_before
from frontend.formatting import clock
from maat.api.job_answers import JobEventOut
from maat.figures.base import thinned
from maat.figures.texts import escape
from maat.figures.theme import Palette
from maat.vocabulary import JobState

MOST_OF_A_KIND = 300
_Passing: TypeAlias = tuple[JobEventOut, str | None]
"""An event, and the state in which it found the job."""


class Mark(NamedTuple):
    """A kind of mark: its words in the legend, its sign, and where it stands in the strip, 0-1."""

    words: str
    sign: str
    height: float


RESCALED = Mark("other number of GPUs", "triangle-up", 0.25)
MOVED = Mark("moved", "diamond", 0.25)
RESTARTED = Mark("restarted", "circle", 0.25)
PREEMPTED = Mark("lost its GPUs", "triangle-down", 0.75)
FAILED = Mark("failure", "x", 0.75)
MARKS = (RESCALED, MOVED, RESTARTED, PREEMPTED, FAILED)
_OF_CHANGE = {"rescale": RESCALED, "migrate": MOVED, "preempt": PREEMPTED}
_OF_STATE = {
    JobState.RESTARTING: RESTARTED,
    JobState.PREEMPTED: PREEMPTED,
    JobState.FAILED: FAILED,
}
_FAILURES = frozenset({"node-failed", "crash", "crash-loop", "engine-lost"})


def mark_of(event: JobEventOut) -> Mark | None:
    """Return how an event is marked; None for those that change no course."""
    if event["kind"] == "node-failed" or event["data"].get("cause") in _FAILURES:
        return FAILED
    change = _OF_CHANGE.get(str(event["data"].get("change")))
    if change is not None:
        return change
    return next((mark for state, mark in _OF_STATE.items() if state == event["state"]), None)


def mark_traces(events: Sequence[JobEventOut], colours: Palette) -> Iterator[go.Scatter]:
    """Yield a trace for each kind that happened."""
    found: dict[Mark, list[_Passing]] = {}
    for event, before in with_state_before(events):
        mark = mark_of(event)
        if mark is not None:
            found.setdefault(mark, []).append((event, before))
    for mark in MARKS:
        if mark in found:
            yield _trace(mark, found[mark], colours)


def _trace(mark: Mark, events: Sequence[_Passing], colours: Palette) -> go.Scatter:
    kept = [events[i] for i in thinned(events, MOST_OF_A_KIND)]
    bad = mark in (PREEMPTED, FAILED)
    return go.Scatter(
        name=mark.words,
        x=[event["at"] for event, _ in kept],
        y=[mark.height] * len(kept),
        text=[_words(*one) for one in kept],
        mode="markers",
        marker={
            "symbol": mark.sign,
            "size": 9,
            "color": colours.danger if bad else colours.muted,
        },
        hovertemplate="%{text}<extra></extra>",
    )


def _words(event: JobEventOut, before: str | None) -> str:
    words = event_words(event["kind"], event["data"], state=event["state"], before=before)
    told = [words, details(event["data"])]
    return f"{clock(event['at'])}: {escape(', '.join(part for part in told if part))}"
