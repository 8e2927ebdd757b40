"""Durations as programs write them: 5400, 1-02:03:04, 1 days 02:03:04, 1h30m, PT1H30M."""

from __future__ import annotations

import re

from maat.workloads.formats.foreign.units import SECONDS_OF, unit_word

# [days-]HH:MM:SS of Slurm; `1 days 02:03:04` of pandas; `1 day, 2:03:04` of Python
_CLOCK = re.compile(
    r"(?:(\d{1,6})(?:-| days? |\s*days?,\s*))?(\d{1,5}):(\d{2}):(\d{2}(?:[.,]\d{1,9})?)"
)
_DAYS = re.compile(r"(\d{1,6}) days?")
_ISO = re.compile(
    r"P(?:(\d+)D)?(?:T(?:(\d+(?:\.\d+)?)H)?(?:(\d+(?:\.\d+)?)M)?(?:(\d+(?:\.\d+)?)S)?)?",
    re.IGNORECASE,
)
_PART = re.compile(r"\s*(\d{1,12}(?:\.\d{1,9})?)\s*([a-z\u00b5\u03bc]+)[,\s]*", re.IGNORECASE)


def written_duration(text: str) -> float | None:
    """Return the seconds of a duration that says its units; None if the text is none.

    `90:00` is none: it may be minutes or hours.
    """
    sign = -1.0 if text.startswith("-") else 1.0
    seconds = _unsigned(text.removeprefix("-").strip())
    return None if seconds is None else sign * seconds


def _unsigned(text: str) -> float | None:
    clock = _CLOCK.fullmatch(text)
    if clock:
        days, hours, minutes = (int(clock[place] or 0) for place in (1, 2, 3))
        return ((days * 24 + hours) * 60 + minutes) * 60.0 + float(clock[4].replace(",", "."))
    if days_alone := _DAYS.fullmatch(text):
        return float(days_alone[1]) * 86_400.0
    iso = _ISO.fullmatch(text)
    if iso and any(iso.groups()):
        parts = zip(iso.groups(), (86_400.0, 3600.0, 60.0, 1.0), strict=True)
        return sum(float(part or 0) * seconds for part, seconds in parts)
    return _sum_of_parts(text)


def _sum_of_parts(text: str) -> float | None:
    """Return the seconds of `1h 30m` or `90 min`."""
    total, at = 0.0, 0
    while match := _PART.match(text, at):
        unit = unit_word(match[2])
        if unit is None:
            return None
        total += float(match[1]) * SECONDS_OF[unit]
        at = match.end()
    return total if at == len(text) > 0 else None
