"""Durations as people write them, such as 90m, 24h or 7d."""

from __future__ import annotations

import re

from maat.scheduling.errors import ParameterError

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)([smhd]?)")


def seconds_of(text: str, *, field: str) -> float:
    """Return the seconds of a duration; without a unit it is seconds. Raises ParameterError."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise ParameterError(
            "is no duration", field=field, value=text, remedy="Write for example 24h, 90m or 7d."
        )
    return float(found[1]) * _UNITS[found[2] or "s"]
