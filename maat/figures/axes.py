"""Axes of a figure: their titles, which must be there, and their scales."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10
from typing import Any

import plotly.graph_objects as go

from maat.figures.base import figure

_DECADES = [step * 10.0**power for power in range(-6, 7) for step in (1, 2, 5)]
_POWERS = [10.0**power for power in range(-9, 13)]
SPARSE_BEYOND = 1e6  # times from end to end: 2 and 5 would stand on each other


def titled_figure(scheme: str | None, *, x: str, y: str, height: int | None = None) -> go.Figure:
    """Return an empty figure with its axes titled. Raises ValueError for an axis without a title.

    `x`, `y`: what stands along the axis, with its unit in brackets, such as `JCT (hours)`.
    """
    for name, title in (("x", x), ("y", y)):
        if not title.strip():
            raise ValueError(f"{name}: the axis has no title. Give it one with its unit.")
    return figure(scheme, x=x, y=y, height=height)


def log_axis(values: Sequence[float], *, sparse_beyond: float = SPARSE_BEYOND) -> dict[str, Any]:
    """Return what makes an axis logarithmic, with numbers at 1, 2 and 5 of each decade.

    A narrow range with fewer than three of these has even ones; one of more than `sparse_beyond`
    times from end to end has powers of ten. `values`: above zero, at least one.
    """
    low, high = min(values), max(values)
    ticks = [tick for tick in _DECADES if low <= tick <= high]
    if len(ticks) < 3:
        low, high = (low, high) if high > low * 1.05 else (low / 1.2, high * 1.2)
        ticks = sorted({float(f"{low * (high / low) ** (step / 4):.3g}") for step in range(5)})
        return {
            "type": "log",
            "tickvals": ticks,
            "ticktext": [f"{tick:g}" for tick in ticks],
            "range": [log10(low) - 0.01, log10(high) + 0.01],
        }
    ticks = _DECADES if high / low < sparse_beyond else _POWERS
    return {"type": "log", "tickvals": ticks, "ticktext": [f"{tick:g}" for tick in ticks]}
