"""Units of time, as headers name them: `runtime_hours`, `duration (min)`, `elapsedMs`, `wait_s`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum


class Unit(StrEnum):
    """A unit of time."""

    NANOSECONDS = "ns"
    MICROSECONDS = "us"
    MILLISECONDS = "ms"
    SECONDS = "s"
    MINUTES = "min"
    HOURS = "h"
    DAYS = "d"


SECONDS_OF: Mapping[Unit, float] = {
    Unit.NANOSECONDS: 1e-9,
    Unit.MICROSECONDS: 1e-6,
    Unit.MILLISECONDS: 1e-3,
    Unit.SECONDS: 1.0,
    Unit.MINUTES: 60.0,
    Unit.HOURS: 3600.0,
    Unit.DAYS: 86_400.0,
}
_WORDS: Mapping[str, Unit] = {
    word: unit
    for unit, words in {
        Unit.NANOSECONDS: "ns nsec nsecs nanos nanosecond nanoseconds",
        Unit.MICROSECONDS: "us \u00b5s \u03bcs usec usecs micros microsecond microseconds",
        Unit.MILLISECONDS: "ms msec msecs millis milli millisecond milliseconds",
        Unit.SECONDS: "s sec secs second seconds",
        Unit.MINUTES: "m min mins minute minutes",
        Unit.HOURS: "h hr hrs hour hours",
        Unit.DAYS: "d day days",
    }.items()
    for word in words.split()
}
# Words that mean something else where they begin a name: min_runtime is the least, not in minutes.
_ONLY_AT_THE_END = {"m", "min", "s", "h", "d", "us", "ms", "ns", "milli", "second"}
_AT_THE_BEGINNING = {"milliseconds", "seconds", "secs", "minutes", "mins", "hours", "hrs", "days"}
_WORD = re.compile(
    r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z\u00b5\u03bc]+|[A-Z]+|\d+|[^\W\d_]+"
)


def words_of(name: str) -> tuple[str, ...]:
    """Return the words of a column's name in lower case: of `gpuCount` as of `GPU COUNT`."""
    return tuple(word.lower() for word in _WORD.findall(name))


def unit_in(name: str) -> Unit | None:
    """Return the unit that a column's name says; None if it says none."""
    words = words_of(name)
    for place, word in enumerate(words):
        is_last = place == len(words) - 1
        if word in _WORDS and place > 0 and (is_last or word not in _ONLY_AT_THE_END):
            return _WORDS[word]
    first = words[0] if words else ""
    is_unit = first in _WORDS and first not in _ONLY_AT_THE_END
    return _WORDS[first] if is_unit and (len(words) == 1 or first in _AT_THE_BEGINNING) else None


def unit_word(word: str) -> Unit | None:
    """Return the unit that a word stands for, such as `hours`; None if it is none."""
    return _WORDS.get(word.strip().lower())
