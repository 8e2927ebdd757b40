"""Numbers as people read them, the same on pages and in the terminal."""

from __future__ import annotations

from math import isfinite

ABSENT = "–"


def number(value: float | None, digits: int = 3) -> str:
    """Up to `digits` significant figures, thousands apart, no exponent for everyday sizes."""
    if value is None or not isfinite(value):
        return ABSENT
    if value == 0:
        return "0"
    if abs(value) >= 10**digits:
        return f"{value:,.0f}".replace(",", " ")
    if abs(value) < 1e-4:
        return f"{value:.{digits - 1}e}"
    text = f"{value:.{digits}g}"
    return f"{float(text):,.10f}".rstrip("0").rstrip(".").replace(",", " ")


def count(value: int) -> str:
    """`18 034`: thousands apart, as in `number`."""
    return f"{value:,}".replace(",", " ")


def percent(share: float) -> str:
    """Whole percentages; one decimal below 1 %."""
    value = share * 100
    return f"{value:.1f} %" if 0 < abs(value) < 1 else f"{value:.0f} %"


def duration(seconds: float | None) -> str:
    """`2 h 13 min`: the two largest units that say something."""
    if seconds is None or not isfinite(seconds):
        return ABSENT
    if seconds < 0:
        return "−" + duration(-seconds)
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    for unit, size, below, below_size in (
        ("d", 86400, "h", 3600),
        ("h", 3600, "min", 60),
        ("min", 60, "s", 1),
    ):
        if whole >= size:
            major, rest = divmod(whole, size)
            minor = rest // below_size
            return f"{major} {unit} {minor} {below}" if minor else f"{major} {unit}"
    return ABSENT
