"""Numbers, spans and changes as text. One home, so that all forms of a report say the same."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from math import isfinite

from backend.periods import Period

ABSENT = "–"
MINUS = "−"
NO_BREAK = "\u00a0"
FEW = 30  # below so many jobs a quantile is a hint
MINUTE = 60.0  # seconds: shorter waits are not told apart
_UNITS = ((86_400, "d"), (3600, "h"), (60, "min"))


def number(value: float | None, figures: int = 3) -> str:
    """Write a number with about three figures, in groups of thousands."""
    if value is None or not isfinite(value):
        return ABSENT
    size = abs(float(f"{value:.{figures}g}"))  # 0.9996 is written as 1.00
    if value == 0:
        return "0"
    if size >= 10 ** (figures - 1) or isinstance(value, int):
        return f"{value:,.0f}".replace(",", NO_BREAK).replace("-", MINUS)
    if 0 < size < 0.001:
        return f"{value:.1e}".replace("-", MINUS)
    decimals = figures - 1 if size >= 1 else figures
    decimals = figures - 2 if size >= 10 else decimals
    return f"{value:.{decimals}f}".replace("-", MINUS)


def percent(share: float | None) -> str:
    """Write a share in percent, by two figures at least: 12 %, 1.2 %, 0.12 %, < 0.01 %."""
    if share is None or not isfinite(share):
        return ABSENT
    whole = share * 100
    if 0 < whole < 0.01:
        return f"<{NO_BREAK}0.01{NO_BREAK}%"
    digits = 0 if abs(whole) >= 9.95 or whole == 0 else 1 if abs(whole) >= 0.995 else 2
    return f"{whole:.{digits}f}{NO_BREAK}%".replace("-", MINUS)


def points(difference: float | None) -> str:
    """Write the difference of two shares in percentage points, with its sign."""
    if difference is None:
        return ABSENT
    whole = round(difference * 100, 1)
    return f"{_sign(whole)}{abs(whole):.1f}{NO_BREAK}points"


def relative(change: float | None) -> str:
    """Write a relative change with its sign; a multiple where it is more than tenfold."""
    if change is None:
        return ABSENT
    if change >= 9:
        return f"×{change + 1:.0f}"
    whole = round(change * 100, 1 if abs(change) < 0.0995 else 0)
    return f"{_sign(whole)}{abs(whole):g}{NO_BREAK}%"


def _sign(value: float) -> str:
    return "+" if value > 0 else MINUS if value < 0 else "±"


def duration(seconds: float | None) -> str:
    """Write a duration by its two largest units."""
    if seconds is None or not isfinite(seconds):
        return ABSENT
    if seconds < 59.5:
        return f"{seconds:.0f}{NO_BREAK}s"
    rest, parts = round(seconds / 60) * 60 if seconds >= 3600 else round(seconds), []
    for size, unit in (*_UNITS, (1, "s")):
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{NO_BREAK}{unit}")
    return " ".join(parts[:2])


def hours(value: float | None) -> str:
    return ABSENT if value is None else f"{number(value)}{NO_BREAK}GPU-h"


def money(value: float | None, currency: str | None) -> str:
    if value is None:
        return ABSENT
    shown = number(round(value, 2) if abs(value) < 100 else round(value))
    return f"{shown}{NO_BREAK}{currency}" if currency else shown


def day(moment: datetime) -> str:
    return f"{moment.day}{NO_BREAK}{moment:%b}{NO_BREAK}{moment.year}"


def span(period: Period) -> str:
    """Write a period by its first and last day, with the hours where it has no whole days."""
    if not period.has_whole_days:
        return f"{day(period.start)} {period.start:%H:%M} to {day(period.end)} {period.end:%H:%M}"
    last = period.end - timedelta(days=1)
    return day(period.start) if last <= period.start else f"{day(period.start)} to {day(last)}"


def listed(words: Sequence[str], *, most: int = 4) -> str:
    """Join words as a sentence does; beyond `most` say how many more there are."""
    if len(words) > most:
        words = [*words[: most - 1], f"{len(words) - most + 1} more"]
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def without(label: str, left_out: Sequence[str]) -> str:
    """Say in a label what its number leaves out: `Cost, without a100`."""
    return f"{label}, without {listed(left_out)}" if left_out else label


def counted(count: int, noun: str) -> str:
    """Write a count with its noun: `1 job`, `1 204 jobs`."""
    return f"{number(count)}{NO_BREAK}{noun}{'' if count == 1 else 's'}"
