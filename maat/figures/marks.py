"""How the series of a figure are told apart: by dash, symbol or pattern too, never by hue alone."""

from __future__ import annotations

from dataclasses import dataclass

from maat.colours import DASHES, SERIES

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "cross", "star")
PATTERNS = ("", "/", ".", "x", "\\", "+", "|")


@dataclass(frozen=True, slots=True)
class Mark:
    """Colour, dash of a line, symbol of a point and pattern of a bar."""

    colour: str
    dash: str
    symbol: str
    pattern: str


def mark(index: int) -> Mark:
    """Return the look of the series at this place of its figure.

    No two of 36 lines, nor of 42 groups of points or bars, look alike.

    >>> mark(0).colour == mark(6).colour, mark(0).dash == mark(6).dash
    (True, False)
    """
    return Mark(
        SERIES[index % len(SERIES)],
        DASHES[(index + index // len(DASHES)) % len(DASHES)],
        SYMBOLS[index % len(SYMBOLS)],
        PATTERNS[index % len(PATTERNS)],
    )
