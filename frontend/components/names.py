"""Names that people chose, in tables: long ones are cut until one points at them."""

from __future__ import annotations

from dash import html

LONGEST_SHOWN = 28  # characters, as in maat.css


def cut_name(name: str) -> html.Span | str:
    """Return the name, or a part of the page that shows its beginning and holds it whole."""
    if len(name) <= LONGEST_SHOWN:
        return name
    return html.Span(name, className="long-name", title=name, tabIndex=0)
