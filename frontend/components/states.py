"""Job and operation states: a glyph and a hue each, never hue alone."""

from __future__ import annotations

from dataclasses import dataclass

import dash_mantine_components as dmc
from dash import html

from maat.api.rounds import RoundOut
from maat.colours import gpu_colour


@dataclass(frozen=True, slots=True)
class StateLook:
    glyph: str
    hue: str


STATES = {
    "submitted": StateLook("○", "gray"),
    "profiling": StateLook("◌", "grape"),
    "pending": StateLook("◔", "yellow"),
    "starting": StateLook("◐", "cyan"),
    "running": StateLook("●", "blue"),
    "restarting": StateLook("↻", "cyan"),
    "paused": StateLook("‖", "gray"),
    "preempted": StateLook("◒", "orange"),
    "succeeded": StateLook("✓", "green"),
    "failed": StateLook("✗", "red"),
    "cancelled": StateLook("■", "gray"),
    "queued": StateLook("○", "gray"),
}
JOB_STATES = tuple(name for name in STATES if name != "queued")
FINAL_STATES = frozenset({"succeeded", "failed", "cancelled"})


def state_text(state: str) -> str:
    look = STATES.get(state)
    return f"{look.glyph} {state}" if look else state


def state_chip(state: str, words: str | None = None) -> html.Span:
    """The state as a chip: glyph, word, hue. `words`: shown in place of the state's own."""
    look = STATES.get(state, StateLook("?", "gray"))
    return html.Span(
        [html.Span(look.glyph, className="state-glyph"), words or state],
        className=f"state state-{look.hue}",
    )


def gpu_chip(gpu_type: str, text: str | None = None) -> dmc.Group:
    """A GPU type with its colour, the same in every chart."""
    return dmc.Group(
        [
            html.Span(className="swatch", style={"backgroundColor": gpu_colour(gpu_type)}),
            html.Span(text or gpu_type),
        ],
        gap=6,
        wrap="nowrap",
    )


def what_fell_back(entry: RoundOut) -> str:
    """Say what gave no usable answer in a round that kept the present allocation."""
    failed = entry["status"] == "policy-failed"
    return "The policy made no decision" if failed else "The solver fell back"
