"""Texts that users wrote, for charts: Plotly reads markup, and no entity of quotes."""

from __future__ import annotations

from html import escape as escaped


def escape(text: str) -> str:
    """Return the text with `&`, `<` and `>` escaped. For contents, not for attributes."""
    return escaped(text, quote=False)


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
