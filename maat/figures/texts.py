"""Texts that users wrote, for charts: Plotly reads markup, and no entity of quotes."""

from __future__ import annotations

from html import escape as escaped
from unicodedata import bidirectional

_TURNING = {"R", "AL", "LRE", "LRO", "RLE", "RLO", "LRI", "RLI", "FSI"}
"""Letters and marks that turn the direction of what stands beside them, in a hover text say."""


def escape(text: str) -> str:
    """Return the text with `&`, `<` and `>` escaped; what turns its direction ends with it.

    For contents, not for attributes.
    """
    shown = escaped(text, quote=False)
    is_plain = text.isascii() or _TURNING.isdisjoint(map(bidirectional, text))
    return shown if is_plain else f"\u2068{shown}\u2069"


_NARROW, _WIDE = frozenset("ijl.,:;'|![]() "), frozenset("mwMW@%")


def text_pixels(text: str) -> int:
    """Return how wide a text of 12 pixels is about, more rather than less."""
    capital = 8.5
    return round(
        sum(
            4.0 if one in _NARROW else 11.0 if one in _WIDE else capital if one.isupper() else 6.3
            for one in text
        )
    )
