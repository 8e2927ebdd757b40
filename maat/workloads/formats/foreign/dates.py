"""Dates as programs and spreadsheets write them, as seconds since 1970.

`02/03/2026` is in March or in February: a file's order is decided by all of its dates; where they
show none, it is asked. Times without a zone are in the zone that is given, else in UTC.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from enum import StrEnum
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_ZONE = r"(?P<zone>Z|UTC|GMT|[+-]\d{2}(?::?\d{2})?|[A-Z][A-Z_]+(?:/[A-Z_+-]+)+)"
_CLOCK = (
    r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?)?"
    r"(?:\s*(?P<half>[ap])\.?m\.?)?"
)
_TAIL = rf"(?:(?:[T,]|\s)+{_CLOCK})?(?:\s*{_ZONE})?"
_YEAR_FIRST = re.compile(
    rf"(?P<year>\d{{4}})[-/.](?P<month>\d{{1,2}})[-/.](?P<day>\d{{1,2}}){_TAIL}", re.IGNORECASE
)
_YEAR_LAST = re.compile(
    rf"(?P<one>\d{{1,2}})(?P<mark>[./-])(?P<two>\d{{1,2}})(?P=mark)(?P<year>\d{{4}}|\d{{2}}){_TAIL}",
    re.IGNORECASE,
)
_DAY_NAME = r"(?:[A-Z][a-z]{2,8},?\s+)?"
_DAY_MONTH = re.compile(
    rf"{_DAY_NAME}(?P<day>\d{{1,2}})[\s.-]+(?P<name>[A-Z][a-z]{{2,8}})\.?[\s,-]+(?P<year>\d{{4}})"
    rf"{_TAIL}",
    re.IGNORECASE,
)
_MONTH_DAY = re.compile(
    rf"{_DAY_NAME}(?P<name>[A-Z][a-z]{{2,8}})\.?\s+(?P<day>\d{{1,2}}),?\s+(?P<year>\d{{4}}){_TAIL}",
    re.IGNORECASE,
)
_CTIME = re.compile(
    rf"{_DAY_NAME}(?P<name>[A-Z][a-z]{{2}})\s+(?P<day>\d{{1,2}})\s+{_CLOCK}(?:\s+{_ZONE})?\s+"
    r"(?P<year>\d{4})",
    re.IGNORECASE,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


class DayOrder(StrEnum):
    """Which number of 02/03/2026 is the day."""

    DAY_FIRST = "day-first"
    MONTH_FIRST = "month-first"


@dataclass(frozen=True, slots=True)
class WrittenDate:
    """A date as it was written. `has_zone`: whether its text says the zone."""

    moment: datetime
    has_zone: bool

    def seconds(self, zone: tzinfo) -> float:
        """Return it as seconds since 1970; `zone`: of dates that name none."""
        return self._in(zone, 0).timestamp()

    def readings(self, zone: tzinfo) -> tuple[float, ...]:
        """Return the moments that it may be: two where the zone's clock was set back."""
        if self.has_zone or isinstance(zone, timezone):  # no clock of its own
            return (self.seconds(zone),)
        return tuple(dict.fromkeys(self._in(zone, fold).timestamp() for fold in (0, 1)))

    def _in(self, zone: tzinfo, fold: int) -> datetime:
        return self.moment if self.has_zone else self.moment.replace(tzinfo=zone, fold=fold)


def zone_of(name: str) -> tzinfo | None:
    """Return a zone by its name, such as Europe/Berlin, UTC or +01:00; None if there is none."""
    if name.upper() in ("UTC", "GMT", "Z"):
        return UTC
    if offset := re.fullmatch(r"([+-])(\d{2}):?(\d{2})", name):
        return _offset_zone(name) if int(offset[2]) < 24 and int(offset[3]) < 60 else None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _offset_zone(text: str) -> tzinfo:
    digits = text[1:].replace(":", "").ljust(4, "0")
    minutes = int(digits[:2]) * 60 + int(digits[2:])
    return timezone(timedelta(minutes=-minutes if text[0] == "-" else minutes))


def shown_order(text: str) -> DayOrder | None:
    """Return the order that a date shows, with its year last; None if it fits both, or is none."""
    match = _YEAR_LAST.fullmatch(text)
    if match is None:
        return None
    one, two = int(match["one"]), int(match["two"])
    if match["mark"] == "." or (one > 12 >= two):
        return DayOrder.DAY_FIRST
    return DayOrder.MONTH_FIRST if two > 12 >= one else None


def needs_order(text: str) -> bool:
    """Return whether a date can be read in both orders, to different days."""
    match = _YEAR_LAST.fullmatch(text)
    return match is not None and shown_order(text) is None and match["one"] != match["two"]


def written_date(text: str, order: DayOrder | None) -> WrittenDate | None:
    """Return a date; None if the text is none. `order`: of dates that do not show it."""
    if text.isdigit():  # other numbers are no dates
        if len(text) not in (8, 14) or not "1970" <= text[:4] < "2100":
            return None
        text = f"{text[:8]}T{text[8:]}" if len(text) == 14 else text
    if text[:4].isdigit() and "." not in text[:10]:  # the fast path of most
        try:
            moment = datetime.fromisoformat(text)
            return WrittenDate(moment, moment.tzinfo is not None)
        except ValueError:
            pass
    try:
        return _date_by_parts(text, order)
    except (ValueError, OverflowError):
        return None


def _date_by_parts(text: str, order: DayOrder | None) -> WrittenDate | None:
    if match := _YEAR_FIRST.fullmatch(text):
        return _with_clock(match, int(match["year"]), int(match["month"]), int(match["day"]))
    if match := _YEAR_LAST.fullmatch(text):
        day, month = int(match["one"]), int(match["two"])
        if (shown_order(text) or order or DayOrder.DAY_FIRST) is DayOrder.MONTH_FIRST:
            day, month = month, day
        year = int(match["year"])
        return _with_clock(match, year + 2000 if year < 100 else year, month, day)
    for pattern in (_DAY_MONTH, _MONTH_DAY, _CTIME):
        match = pattern.fullmatch(text)
        if match and match["name"][:3].lower() in _MONTHS:
            month = _MONTHS.index(match["name"][:3].lower()) + 1
            return _with_clock(match, int(match["year"]), month, int(match["day"]))
    return None


def _with_clock(match: re.Match[str], year: int, month: int, day: int) -> WrittenDate | None:
    hour = int(match["hour"] or 0)
    if match["half"]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if match["half"].lower() == "p" else 0)
    microseconds = int((match["fraction"] or "0").ljust(6, "0")[:6])
    moment = datetime(
        year, month, day, hour, int(match["minute"] or 0), int(match["second"] or 0), microseconds
    )
    zone = match["zone"]
    if zone is None:
        return WrittenDate(moment, has_zone=False)
    named = _named_zone(zone)
    return None if named is None else WrittenDate(moment.replace(tzinfo=named), has_zone=True)


def _named_zone(text: str) -> tzinfo | None:
    is_offset = text[0] in "+-"
    return _offset_zone(text) if is_offset else zone_of(text)
