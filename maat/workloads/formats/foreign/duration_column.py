"""A column of durations, and its unit: by its header, by other columns, or as it was said.

A factor of 60 is the fault that nothing shows later. So the unit of the header is held against the
times of start and end where a file has both, and asked where they disagree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from maat.workloads.formats.foreign.durations import written_duration
from maat.workloads.formats.foreign.numbers import Decimal, number_by
from maat.workloads.formats.foreign.questions import TraceQuestion
from maat.workloads.formats.foreign.records import Cells, Unusable, no_duration, ran
from maat.workloads.formats.foreign.times import Times
from maat.workloads.formats.foreign.units import SECONDS_OF, Unit, unit_in

_TEN_DAYS = 10 * 86_400.0
_LIKELY = (Unit.SECONDS, Unit.MINUTES, Unit.HOURS, Unit.MILLISECONDS)


@dataclass(frozen=True, slots=True)
class DurationColumn:
    """How a column's durations are read. `note`: which unit was taken, and why; "" if none was."""

    name: str
    unit: Unit
    decimal: Decimal | None
    note: str

    def seconds(self, cells: Cells) -> float:
        """Return a duration above 0. Raises Unusable."""
        text = cells[self.name]
        number = number_by(self.decimal, text)
        seconds = written_duration(text) if number is None else number * SECONDS_OF[self.unit]
        if seconds is None:
            raise no_duration(self.name, text)
        return ran(seconds, self.name, text)


def duration_column(
    columns: Mapping[str, str], sample: Sequence[Cells], times: Times, units: Mapping[str, Unit]
) -> DurationColumn:
    """Return how the durations of a file are read. Raises TraceQuestion if the unit is unclear."""
    name = columns["duration"]
    numbers = [
        number
        for cells in sample
        if (number := number_by(times.decimal, cells[name])) is not None and number > 0
    ]
    if not numbers:
        return DurationColumn(name, Unit.SECONDS, times.decimal, "")
    unit, why = _unit(columns, sample, times, units)
    if "duration" not in units and unit is Unit.SECONDS and not why:
        _check_length(name, median(numbers))
    note = f"Numbers of {name} count as {unit.name.lower()}{why and f', {why}'}."
    return DurationColumn(name, unit, times.decimal, note)


def _unit(
    columns: Mapping[str, str], sample: Sequence[Cells], times: Times, units: Mapping[str, Unit]
) -> tuple[Unit, str]:
    """Return the unit, and why; "" if nothing says it."""
    name = columns["duration"]
    if "duration" in units:
        return units["duration"], "as you said"
    by_name, factor = unit_in(name), _factor(columns, sample, times)
    by_times = None if factor is None else _unit_of(factor)
    if factor is not None and (by_times is None or by_name not in (None, by_times)):
        means = f"{factor:.3g} s" if by_times is None else by_times.name.lower()
        raise _unclear(
            f"would be in units of {means} by {columns['start']} and {columns['end']}, and in "
            f"{(by_name or Unit.SECONDS).name.lower()} by its name",
            [by_name or Unit.SECONDS, *([by_times] if by_times else _LIKELY)],
            name,
        )
    if by_name is not None:
        return by_name, "by the name"
    if by_times is not None:
        return by_times, f"by {columns['start']} and {columns['end']}"
    return Unit.SECONDS, ""


def _factor(columns: Mapping[str, str], sample: Sequence[Cells], times: Times) -> float | None:
    """Return the median of (end - start) over the number; None if most rows do not have both."""
    if not {"start", "end"} <= columns.keys():
        return None
    factors = list(_factors(columns, sample, times))
    return median(factors) if 2 * len(factors) > len(sample) else None


def _factors(columns: Mapping[str, str], sample: Sequence[Cells], times: Times) -> Iterator[float]:
    for cells in sample:
        number = number_by(times.decimal, cells[columns["duration"]])
        if number is None or number <= 0:
            continue
        try:
            yield times.elapsed(cells, columns["start"], columns["end"]) / number
        except Unusable:
            continue


def _unit_of(factor: float) -> Unit | None:
    """Return the unit of so many seconds, within a twentieth: times are rounded."""
    fits = [unit for unit, seconds in SECONDS_OF.items() if abs(factor / seconds - 1.0) <= 0.05]
    return fits[0] if fits else None


def _check_length(name: str, middle: float) -> None:
    if middle > _TEN_DAYS:
        raise _unclear(
            f"is {middle:.4g} for half of the jobs, which would be {middle / 86_400:.0f} days",
            [Unit.SECONDS, Unit.MILLISECONDS, Unit.MICROSECONDS],
            name,
        )


def _unclear(problem: str, choices: Sequence[Unit], column: str) -> TraceQuestion:
    return TraceQuestion(
        f"{column} {problem}", field="units", about="duration", choices=list(dict.fromkeys(choices))
    )
