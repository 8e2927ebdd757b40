"""A figure of a paper as the service keeps it, drawn in the colours of a page."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, TypeAlias

from maat.colours import SERIES
from maat.figures.theme import DARK, LIGHT, legible, template

Part: TypeAlias = Any
"""A part of a figure as JSON."""
Kept: TypeAlias = Mapping[str, Part]
"""A figure as JSON: its data and its layout."""

_HEX = re.compile(r"#[0-9a-fA-F]{6}\b")
_NOT_WALKED = frozenset({"x", "y", "z", "text", "customdata", "hovertext", "ids", "template"})


def reproduced_figure(kept: Kept, scheme: str | None) -> dict[str, object]:
    """Return a figure that was drawn on light paper, for a page of this scheme.

    It has the width of its place; data and the colours of its series stay. The page says above it
    of which uploads it is, where its title would stand on the axis of a phone.
    """
    inks = _inks() if scheme == "dark" else {}
    drawn = _inked(dict(kept), inks)
    kept_of_layout = drawn.get("layout", {}).items()
    layout = {name: value for name, value in kept_of_layout if name not in ("width", "title")}
    layout["template"] = template(scheme).to_plotly_json()
    return {"data": drawn.get("data", []), "layout": layout}


def has_panels(kept: Kept) -> bool:
    """Return whether a figure has panels beside one another, which a phone is too narrow for."""
    starts = {
        axis.get("domain", [0.0])[0]
        for name, axis in kept.get("layout", {}).items()
        if name.startswith("xaxis")
    }
    return len(starts) > 1


def _inks() -> dict[str, str]:
    """Return the dark colour for each light one: greys, and names of lines made legible."""
    greys = {value: asdict(DARK)[name] for name, value in asdict(LIGHT).items() if name != "name"}
    names = {legible(colour, "light"): legible(colour, "dark") for colour in SERIES}
    return {
        light.lower(): dark
        for light, dark in (names | greys).items()
        if light.startswith("#") and light not in SERIES
    }


def _inked(value: Part, inks: Mapping[str, str]) -> Part:
    """Return a part of a figure with other inks; what it draws of data is left as it is."""
    if isinstance(value, str):
        return _HEX.sub(lambda found: inks.get(found[0].lower(), found[0]), value)
    if isinstance(value, list):
        return [
            _inked(each, inks) if isinstance(each, str | dict | list) else each for each in value
        ]
    if isinstance(value, Mapping):
        return {
            name: each if name in _NOT_WALKED and not isinstance(each, str) else _inked(each, inks)
            for name, each in value.items()
        }
    return value
