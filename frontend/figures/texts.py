"""Texts that users wrote, for charts: Plotly reads markup, and no entity of quotes."""

from __future__ import annotations

from html import escape as escaped


def escape(text: str) -> str:
    """Return the text with `&`, `<` and `>` escaped. For contents, not for attributes."""
    return escaped(text, quote=False)
