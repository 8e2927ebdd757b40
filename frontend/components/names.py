"""Names that people chose: cut in tables where they are long, isolated within sentences."""

from __future__ import annotations

from dash import html

LONGEST_SHOWN = 28  # characters, as in maat.css


def cut_name(name: str) -> html.Span | str:
    """Return the name, or a part of the page that shows its beginning and holds it whole."""
    if len(name) <= LONGEST_SHOWN:
        return name
    return html.Span(name, className="long-name", title=name, tabIndex=0)


def isolated(name: str) -> str:
    """Return the name for a plain text: marks of direction in it end with it."""
    return f"\u2068{name}\u2069"
