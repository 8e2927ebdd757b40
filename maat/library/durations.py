"""Durations as people write them, such as 90m, 24h or 7d, and bounds on how long jobs stay."""

from __future__ import annotations

import re
from typing import Any

from maat.scheduling.errors import ParameterError
from maat.scheduling.stay_bounds import least_stay_of, most_moves_of
from maat.vocabulary import UNBOUNDED

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


def bounds_of(least_stay_seconds: str | None, most_moves_per_hour: str | None) -> dict[str, Any]:
    """Return the given bounds as a request's fields; None for no bound. Raises ParameterError."""
    given: dict[str, Any] = {}
    if least_stay_seconds is not None:
        given["least_stay_seconds"] = least_stay_of_text(least_stay_seconds)
    if most_moves_per_hour is not None:
        given["most_moves_per_hour"] = most_moves_of(most_moves_per_hour)
    return given


def least_stay_of_text(text: str) -> float | None:
    """Return the seconds of a least stay, such as 30m; None for no bound. Raises ParameterError."""
    if text == UNBOUNDED:
        return None
    return least_stay_of(seconds_of(text, field="least_stay_seconds"), written=text)
