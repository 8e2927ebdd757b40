"""The look of figures: colours, inks and the Plotly templates for light and dark."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import plotly.graph_objects as go

from maat.colours import SERIES

READABLE_CONTRAST = 4.5

FONT = (
    "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Liberation Sans', Arial, "
    "sans-serif"
)


@dataclass(frozen=True, slots=True)
class Palette:
    """The greys of one colour scheme, and its accent."""

    name: str
    paper: str
    card: str
    line: str
    text: str
    muted: str
    free: str
    drained: str
    accent: str
    danger: str


LIGHT = Palette(
    "light",
    "#f7f8fa",
    "#ffffff",
    "#e2e5ea",
    "#1c2128",
    "#59636e",
    "#e9ecf0",
    "#b9c0c9",
    "#1f5fbf",
    "#b42318",
)
DARK = Palette(
    "dark",
    "#14171c",
    "#1b1f26",
    "#30363f",
    "#e6e9ee",
    "#9aa4b1",
    "#2b313a",
    "#59626e",
    "#7fb0ff",
    "#ff8a7a",
)


def palette(scheme: str | None) -> Palette:
    return DARK if scheme == "dark" else LIGHT


def mix(colour: str, other: str, share: float) -> str:
    """`share` of `other` mixed into `colour`, both #rrggbb."""
    one, two = (tuple(int(text[i : i + 2], 16) for i in (1, 3, 5)) for text in (colour, other))
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in zip(one, two, strict=True))


def _luminance(colour: str) -> float:
    """WCAG relative luminance."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in channels
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """WCAG contrast ratio, 1 to 21."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def readable_on(colour: str) -> str:
    """Black or white, whichever reads better on this colour."""
    return max(("#000000", "#ffffff"), key=lambda ink: contrast(ink, colour))


def legible(colour: str, scheme: str | None) -> str:
    """Return the colour mixed with the text colour until it is legible on a card (contrast 4.5)."""
    colours = palette(scheme)
    shares = (mix(colour, colours.text, step / 10) for step in range(11))
    return next(
        (ink for ink in shares if contrast(ink, colours.card) >= READABLE_CONTRAST), colours.text
    )


def translucent(colour: str, alpha: float) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha})"


def on_paper(drawn: go.Figure, scheme: str | None = None) -> go.Figure:
    """Give a figure a background of its own, where no page has one. Returns the figure."""
    card = palette(scheme).card
    return drawn.update_layout(paper_bgcolor=card, plot_bgcolor=card)


@cache
def template(scheme: str | None) -> go.layout.Template:
    """The Plotly template of a colour scheme: horizontal grid lines only, and a unified hover."""
    colours = palette(scheme)
    axis = {
        "automargin": True,
        "linecolor": colours.line,
        "tickcolor": colours.line,
        "tickfont": {"size": 12, "color": colours.muted},
        "title": {"font": {"size": 12, "color": colours.muted}, "standoff": 8},
        "zeroline": False,
        "ticks": "",
        "separatethousands": True,
        "ticklabeloverflow": "allow",  # margins make room: Plotly need not measure each label
    }
    return go.layout.Template(
        layout={
            "font": {"family": FONT, "size": 12, "color": colours.text},
            "separators": ". ",  # `18 034`, as maat.api.shown_numbers writes it
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "colorway": list(SERIES),
            # As wide as most labels need: where they need more, Plotly draws all of it twice.
            "margin": {"l": 64, "r": 16, "t": 20, "b": 48},
            "hovermode": "x unified",
            "hoverlabel": {
                "bgcolor": colours.card,
                "bordercolor": colours.line,
                "font": {"color": colours.text, "size": 12},
            },
            "xaxis": {**axis, "showgrid": False, "showline": True},
            "yaxis": {
                **axis,
                "showgrid": True,
                "gridcolor": colours.line,
                "gridwidth": 1,
                "showline": False,
            },
            "legend": {
                "orientation": "h",
                "x": 0,
                "y": 1.02,
                "yanchor": "bottom",
                "font": {"size": 12},
                "traceorder": "normal",
            },
            "showlegend": False,
            "dragmode": False,
            "transition": {"duration": 0},
            "modebar": {"bgcolor": "rgba(0,0,0,0)"},
        }
    )
