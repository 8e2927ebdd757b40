"""Moments in another system's records: dates, or numbers of seconds, milliseconds or others.

What a column holds is decided by most of its cells; the cells that hold something else are dropped
with their records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from statistics import median

from maat.vocabulary import MAX_SECONDS
from maat.workloads.formats.foreign.dates import DayOrder, WrittenDate, needs_order, written_date
from maat.workloads.formats.foreign.numbers import Decimal, number_by
from maat.workloads.formats.foreign.records import Cells, Unusable, ran
from maat.workloads.formats.foreign.units import SECONDS_OF, Unit, unit_in

_DATE, _NUMBER = "a date", "a number of seconds"
_TEN_YEARS = 10 * 365.25 * 86_400.0
# From which number on a moment cannot be in the unit before it: 1e11 s are 3,000 years.
_EPOCHS: tuple[tuple[float, Unit], ...] = (
    (1e17, Unit.NANOSECONDS),
    (1e14, Unit.MICROSECONDS),
    (1e11, Unit.MILLISECONDS),
)


@dataclass(frozen=True, slots=True)
class TimeColumn:
    """What a column of moments holds.

    `unit`: of its numbers. `middle`: the median, in seconds.
    """

    kind: str = _DATE
    unit: Unit = Unit.SECONDS
    middle: float | None = None

    @property
    def is_number(self) -> bool:
        return self.kind == _NUMBER

    @property
    def is_relative(self) -> bool:
        """Whether it holds numbers from a zero of its own, not from 1970."""
        return self.is_number and (self.middle or 0.0) < _TEN_YEARS


@dataclass(frozen=True)
class Times:
    """Reads the moments of one file. A column that is not named holds dates."""

    columns: Mapping[str, TimeColumn]
    zone: tzinfo = UTC
    order: DayOrder | None = None
    decimal: Decimal | None = None

    def cell(self, cells: Cells, column: str) -> float:
        """Return a moment as seconds since 1970, or since the file's zero. Raises Unusable."""
        return self._readings(cells, column)[0]

    def elapsed(self, cells: Cells, start: str, end: str) -> float:
        """Return the seconds from start to end, above 0. Raises Unusable.

        Where a clock was set back, a local time is one of two moments: the ones count that leave
        the end after the start. If several do, the record does not say how long it ran; nor if a
        time is in the hour that a clock left out when it was set forward.
        """
        starts, ends = self._readings(cells, start), self._readings(cells, end)
        for column, readings in ((start, starts), (end, ends)):
            if readings[0] > readings[-1]:  # the later offset makes it earlier: in no offset it was
                raise Unusable(
                    f"{column} did not exist in the zone: the clock was set forward over it",
                    column=column,
                    value=cells[column],
                    remedy="Name the zone that the times are in, or export times with a zone.",
                )
        fits = {later - earlier for earlier in starts for later in ends if later >= earlier}
        if len(fits) > 1:
            raise Unusable(
                "its times stand in the hour that a clock was set back, and may be either",
                column=end if len(ends) > 1 else start,
                value=cells[end if len(ends) > 1 else start],
                remedy="Export how long it ran (ElapsedRaw), or times with a zone.",
            )
        return ran(fits.pop() if fits else ends[0] - starts[0], end, cells[end])

    def _readings(self, cells: Cells, column: str) -> tuple[float, ...]:
        text, known = cells[column], self.columns.get(column, TimeColumn())
        if self.order is None and not text[:4].isdigit() and needs_order(text):
            raise Unusable(
                f"{column} may be read in two ways: day or month first",
                column=column,
                value=text,
                remedy="Say which number is the day (--dates day-first).",
            )
        date = written_date(text, self.order)
        if known.kind == _DATE and date is not None:  # most cells
            return self._checked(date.readings(self.zone), known, column, text)
        number = number_by(self.decimal, text)
        if date is None and number is None:
            raise Unusable(
                f"{column} is no time",
                column=column,
                value=text,
                remedy="Write 2026-01-31T12:00:00, or seconds.",
            )
        if known.kind != _NUMBER or number is None:
            raise _another_kind(column, text, is_date=date is not None, expected=known.kind)
        return self._checked((number * SECONDS_OF[known.unit],), known, column, text)

    def _checked(
        self, readings: tuple[float, ...], known: TimeColumn, column: str, text: str
    ) -> tuple[float, ...]:
        for seconds in readings:
            _check(seconds, known, column, text)
        return readings


def _another_kind(column: str, text: str, *, is_date: bool, expected: str) -> Unusable:
    return Unusable(
        f"{column} is {_DATE if is_date else _NUMBER}, but {expected} in most rows",
        column=column,
        value=text,
        remedy="Write all times of a column alike: as dates, or as seconds.",
    )


def _check(seconds: float, known: TimeColumn, column: str, text: str) -> None:
    if not 0.0 <= seconds <= MAX_SECONDS:
        raise Unusable(
            f"{column} is negative or too far ahead",
            column=column,
            value=text,
            remedy="Correct the clock of the record.",
        )
    if known.middle is not None and abs(seconds - known.middle) > _TEN_YEARS:
        raise Unusable(
            f"{column} is more than ten years from most others",
            column=column,
            value=text,
            remedy="Correct the clock of the record.",
        )


def time_column(
    name: str,
    cells: Sequence[str],
    *,
    zone: tzinfo,
    order: DayOrder | None,
    decimal: Decimal | None,
    unit: Unit | None = None,
) -> TimeColumn:
    """Return what a column holds by a sample of its cells. `unit`: of its numbers, if it is known.

    Digits such as 20260131 are both: what the others are; dates if all are like that.
    """
    dates = [written_date(text, order) for text in cells]
    numbers = [number_by(decimal, text) for text in cells]
    if _are_numbers(dates, numbers):
        values = [number for number in numbers if number is not None]
        unit = unit or unit_in(name) or _unit_of_moments(median(values))
        return TimeColumn(_NUMBER, unit, median(values) * SECONDS_OF[unit])
    moments = [date.seconds(zone) for date in dates if date is not None]
    return TimeColumn(_DATE, Unit.SECONDS, median(moments) if moments else None)


def _are_numbers(dates: Sequence[WrittenDate | None], numbers: Sequence[float | None]) -> bool:
    """Return whether most cells are numbers and no dates; of as many, the first one decides."""
    only = [
        number is not None
        for date, number in zip(dates, numbers, strict=True)
        if (date is None) != (number is None)
    ]
    return bool(only) and (2 * sum(only) > len(only) or (2 * sum(only) == len(only) and only[0]))


def _unit_of_moments(middle: float) -> Unit:
    return next((unit for least, unit in _EPOCHS if abs(middle) >= least), Unit.SECONDS)
