"""A column of durations, and its unit: by its header, by other columns, or as it was said.

A factor of 60 is the fault that nothing shows later. So the unit of the header, else seconds, is
held against the times of a file, and asked where they disagree: a job runs from its start to its
end; where no start is recorded, no longer than from its submission to its end, and not all jobs
wait many times as long as they run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from maat.scheduling.errors import TraceError
from maat.workloads.formats.foreign.durations import written_duration
from maat.workloads.formats.foreign.numbers import Decimal, number_by
from maat.workloads.formats.foreign.questions import TraceQuestion
from maat.workloads.formats.foreign.records import Cells, Unusable, no_duration, ran
from maat.workloads.formats.foreign.times import Times
from maat.workloads.formats.foreign.units import SECONDS_OF, Unit, unit_in

_TEN_DAYS = 10 * 86_400.0
_LEAST_SECONDS = 10.0
_LONG_WAIT = 10.0
_LEAST_EVIDENCE = 0.1  # share of the durations that must have times beside them
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
    unit, why = _unit(columns, sample, times, units, rows=len(numbers))
    if "duration" not in units and unit is Unit.SECONDS and not why:
        _check_length(name, median(numbers))
    note = f"Numbers of {name} count as {unit.name.lower()}{why and f', {why}'}."
    return DurationColumn(name, unit, times.decimal, note)


def check_seconds(name: str, begin: str, end: str, sample: Sequence[Cells], times: Times) -> None:
    """Raise TraceError if a column that is seconds by its format is not, by the times beside it."""
    columns = {"duration": name, "start": begin, "end": end}
    lengths = list(_each_length(columns, "start", sample, times))
    unit = _fitting_unit(lengths, Unit.SECONDS) if lengths else Unit.SECONDS
    if unit in (None, Unit.SECONDS):  # a job may have been suspended
        return
    raise TraceError(
        f"would be in {unit.name.lower()} by {begin} and {end}, and is seconds in this format",
        field=name,
        value=f"{lengths[0].number:g}",
        remedy=f"Correct the file; or read it as csv, with its unit (--unit duration={unit}).",
    )


def _unit(
    columns: Mapping[str, str],
    sample: Sequence[Cells],
    times: Times,
    units: Mapping[str, Unit],
    *,
    rows: int,
) -> tuple[Unit, str]:
    """Return the unit, and why; "" if nothing says it. `rows`: that have a duration.

    Raises TraceQuestion.
    """
    name = columns["duration"]
    if "duration" in units:
        return units["duration"], "as you said"
    by_name = unit_in(name)
    assumed = by_name or Unit.SECONDS
    begin = "start" if "start" in columns else "submit"
    lengths = _lengths(columns, begin, sample, times)
    if len(lengths) < _LEAST_EVIDENCE * rows or not lengths:
        return assumed, "by the name" if by_name else ""
    between = f"{columns[begin]} and {columns['end']}"
    if begin == "start":
        by_times = _fitting_unit(lengths, assumed)
        means = f"would be in units of {median(map(_factor, lengths)):.3g} s"
    else:
        by_times = _possible_unit(lengths, assumed)
        means = "would be too large for seconds"
    if by_times is not assumed:
        if by_times is not None:
            means = f"would be in {by_times.name.lower()}"
        raise _unclear(
            f"{means} by {between}, and in {assumed.name.lower()} "
            f"{'by its name' if by_name else 'without a unit in its name'}",
            [assumed, *([by_times] if by_times else _LIKELY)],
            name,
        )
    if by_name is not None:
        return by_name, "by the name"
    return Unit.SECONDS, f"by {between}" if begin == "start" else ""


@dataclass(frozen=True, slots=True)
class _Length:
    """A row's duration as a number, and the seconds between two of its times."""

    number: float
    elapsed: float


def _lengths(
    columns: Mapping[str, str], begin: str, sample: Sequence[Cells], times: Times
) -> list[_Length]:
    """Return the rows that have all three; none if a file has no such columns."""
    return list(_each_length(columns, begin, sample, times)) if "end" in columns else []


def _each_length(
    columns: Mapping[str, str], begin: str, sample: Sequence[Cells], times: Times
) -> Iterator[_Length]:
    for cells in sample:
        number = number_by(times.decimal, cells[columns["duration"]])
        if number is None or number <= 0:
            continue
        try:
            yield _Length(number, times.elapsed(cells, columns[begin], columns["end"]))
        except Unusable:
            continue


def _factor(length: _Length) -> float:
    return length.elapsed / length.number


def _fitting_unit(lengths: Sequence[_Length], assumed: Unit) -> Unit | None:
    """Return the unit in which most durations are the time between; the assumed one if it is."""
    fitting = {unit: sum(_fits(each, unit) for each in lengths) for unit in (assumed, *Unit)}
    best = max(fitting, key=lambda unit: fitting[unit])
    return best if 2 * fitting[best] > len(lengths) else None


def _fits(length: _Length, unit: Unit) -> bool:
    """Within a twentieth, since times are rounded; and whole numbers of a unit are rounded too."""
    seconds = SECONDS_OF[unit]
    rounded = min(seconds, 0.5 * length.elapsed) if length.number.is_integer() else 0.0
    off = abs(length.elapsed - length.number * seconds)
    return off <= max(0.05 * length.elapsed, rounded)


def _possible_unit(lengths: Sequence[_Length], assumed: Unit) -> Unit | None:
    """Return the assumed unit if the times from submission to end allow it, else a likely one.

    They do not if most jobs ran longer, or nine of ten waited _LONG_WAIT times as long as they ran.
    """
    seconds = SECONDS_OF[assumed]
    longer = sum(each.number * seconds > 1.05 * each.elapsed + seconds for each in lengths)
    least = sorted(map(_factor, lengths))[len(lengths) // 10]
    if 2 * longer <= len(lengths) and least <= _LONG_WAIT * seconds:
        return assumed
    fits = [unit for unit, each in SECONDS_OF.items() if each <= 1.05 * least]
    return fits[-1] if fits and fits[-1] is not assumed else None


def _check_length(name: str, middle: float) -> None:
    """Raise TraceQuestion if half of the jobs would be too long, or too short, for seconds."""
    if middle > _TEN_DAYS:
        raise _unclear(
            f"is {middle:.4g} for half of the jobs, which would be {middle / 86_400:.0f} days",
            [Unit.SECONDS, Unit.MILLISECONDS, Unit.MICROSECONDS],
            name,
        )
    if middle < _LEAST_SECONDS:
        raise _unclear(
            f"is below {_LEAST_SECONDS:g} for half of the jobs, which is little for seconds",
            [Unit.SECONDS, Unit.MINUTES, Unit.HOURS],
            name,
        )


def _unclear(problem: str, choices: Sequence[Unit], column: str) -> TraceQuestion:
    return TraceQuestion(
        f"{column} {problem}", field="units", about="duration", choices=list(dict.fromkeys(choices))
    )
