"""Numbers as people read them, the same on pages and in the terminal."""

from __future__ import annotations


def percent(share: float) -> str:
    """Whole percentages; one decimal below 1 %."""
    value = share * 100
    return f"{value:.1f} %" if 0 < abs(value) < 1 else f"{value:.0f} %"
