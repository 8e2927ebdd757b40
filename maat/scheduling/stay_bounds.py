"""Reads and checks a least stay and a most of moves an hour, for every way to give them.

Knows no job and no array, so that it costs a command nothing to import it.
"""

from __future__ import annotations

import math

from maat.scheduling.errors import ParameterError
from maat.vocabulary import MAX_MOVES_PER_HOUR, MAX_STAY_SECONDS, UNBOUNDED

DAY_SECONDS = 86_400.0


def least_stay_of(
    given: object, *, field: str = "least_stay_seconds", written: str | None = None
) -> float | None:
    """Return a least stay in seconds, from a number or its text; None for None and `none`.

    `field`: what the error calls it; `written`: how it was written, if not in seconds. Raises
    ParameterError for all else, and for a number that is not from 0 to MAX_STAY_SECONDS.
    """
    if given is None or given == UNBOUNDED:
        return None
    seconds = _number(given)
    if not 0 <= seconds <= MAX_STAY_SECONDS:
        days = MAX_STAY_SECONDS / DAY_SECONDS
        raise ParameterError(
            f"is no time from 0 to {MAX_STAY_SECONDS:.0f} s ({days:g} days)",
            field=field,
            value=given if written is None else written,
            remedy=f"Give such a time, as 1800 s are, or {UNBOUNDED} for no bound.",
        )
    return seconds


def most_moves_of(given: object, *, field: str = "most_moves_per_hour") -> int | None:
    """Return a most of moves an hour, from a whole number or its text; None for None and `none`.

    `field`: what the error calls it. Raises ParameterError for all else, and for a number that is
    not from 1 to MAX_MOVES_PER_HOUR.
    """
    if given is None or given == UNBOUNDED:
        return None
    moves = _number(given)
    if not 1 <= moves <= MAX_MOVES_PER_HOUR or moves != int(moves):
        raise ParameterError(
            f"is no whole number from 1 to {MAX_MOVES_PER_HOUR}",
            field=field,
            value=given,
            remedy=f"Give such a number, as 4 is, or {UNBOUNDED} for no bound.",
        )
    return int(moves)


def _number(given: object) -> float:
    """Return a number as it is or as text; not a number for all else, which no range has."""
    if isinstance(given, bool) or not isinstance(given, (int, float, str)):
        return math.nan
    try:
        return float(given)
    except (ValueError, OverflowError):
        return math.nan
