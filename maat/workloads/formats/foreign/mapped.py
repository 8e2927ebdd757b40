"""Any CSV, by which of its columns means what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

from maat.scheduling.errors import TraceError
from maat.workloads.formats.foreign.duration_column import DurationColumn, duration_column
from maat.workloads.formats.foreign.gpu_cells import types_in
from maat.workloads.formats.foreign.guesses import guessed_columns
from maat.workloads.formats.foreign.numbers import number_by
from maat.workloads.formats.foreign.questions import ReadingOptions, TraceQuestion
from maat.workloads.formats.foreign.record_table import read_records
from maat.workloads.formats.foreign.records import (
    Cells,
    ForeignFormat,
    ForeignJob,
    Found,
    Note,
    Unusable,
    is_absent,
    ran,
    whole_count,
)
from maat.workloads.formats.foreign.scans import TableScan, cells_of, scan_table
from maat.workloads.formats.foreign.tables import header_of, jobs_of_table
from maat.workloads.formats.foreign.times import Times, time_column
from maat.workloads.formats.foreign.units import Unit, unit_in

FIELDS: Mapping[str, str] = {
    "submit": "when it was submitted: a date, or seconds",
    "duration": "how long it ran: seconds, or [days-]HH:MM:SS",
    "start": "when it started, where there is no duration",
    "end": "when it ended, where there is no duration",
    "gpus": "how many GPUs it had",
    "name": "its name; else its line",
    "gpu_type": "the type of its GPUs, or several that it may have",
    "tenant": "whose it is",
    "state": "how it ended",
}
TIMES = ("submit", "start", "end")
_IN_DAYS = (36_526.0, 55_153.0)
_NOT_ENDED = {
    *("RUNNING", "R", "PENDING", "PD", "QUEUED", "WAITING", "SUSPENDED", "COMPLETING"),
    *("CONFIGURING", "STARTING", "SUBMITTED", "CREATED", "SCHEDULED"),
}
_EXAMPLE = "submit=SubmitTime, gpus=GPUs, duration=Seconds"


def columns_of(source: Path | str) -> tuple[str, ...]:
    """Return the header of a CSV. Raises TraceError."""
    return read_records(source, error=TraceError).header


def first_lines(source: Path | str, most: int) -> list[list[str]]:
    """Return the cells of the first lines below the header of a CSV. Raises TraceError."""
    table = read_records(source, error=TraceError)
    return [list(record.cells) for record in islice(table.records, most)]


def mapped(columns: Mapping[str, str]) -> ForeignFormat:
    """Return the format of a CSV whose columns are these, by field. Raises TraceError."""
    for field in columns:
        if field not in FIELDS:
            raise TraceError(
                "is nothing that a column can mean",
                field="mapping",
                value=field,
                remedy=f"Use {', '.join(FIELDS)}.",
            )
    missing = [name for name in ("submit", "gpus") if name not in columns]
    if "duration" not in columns and not {"start", "end"} <= columns.keys():
        missing.append("duration (or start and end)")
    if missing:
        raise TraceError(
            f"lacks {', '.join(missing)}",
            field="mapping",
            remedy=f"Say which columns they are, such as {_EXAMPLE}.",
        )
    pairs = ", ".join(f"{field} = {column}" for field, column in columns.items())
    return ForeignFormat(
        title="CSV",
        read=partial(_read, columns),
        about=f"Each line, read as {pairs}.",
    )


@dataclass(frozen=True)
class _Reading:
    """How the cells of one file are read. `duration` None: from `start` and `end`."""

    columns: Mapping[str, str]
    times: Times
    duration: DurationColumn | None


def _read(columns: Mapping[str, str], source: Path | str, options: ReadingOptions) -> Found:
    needs = [(column,) for column in columns.values()]
    header_of(source, needs=needs, remedy="Map a column that the header has.")
    known = _with_evidence(columns, source)
    moments = [known[field] for field in TIMES if field in known]
    numbers = [columns[field] for field in ("duration", "gpus") if field in columns]
    ran_between = None if "duration" in columns else (columns["start"], columns["end"])
    scan = scan_table(source, times=moments, numbers=numbers, ran=ran_between)
    scan.check_zone(options)
    reading = _reading(columns, known, scan, options)
    yield from jobs_of_table(
        source, partial(_job, reading), gpu_seconds_of=partial(_gpu_seconds, reading)
    )
    yield from _notes(reading, scan, options)


def _with_evidence(columns: Mapping[str, str], source: Path | str) -> Mapping[str, str]:
    """Return the columns with those of start and end, against which a duration's unit is held."""
    if "duration" not in columns:
        return columns
    guess = guessed_columns(source, columns).mapping
    more = {field: guess[field] for field in ("start", "end") if field in guess}
    return {**more, **columns}


def _reading(
    columns: Mapping[str, str],
    known: Mapping[str, str],
    scan: TableScan,
    options: ReadingOptions,
) -> _Reading:
    """Return how cells are read. `known`: also columns that are only evidence."""
    zone, order, decimal = options.tzinfo(), scan.order(options), scan.decimal(options)
    moments = {
        known[field]: time_column(
            known[field],
            cells_of(scan.sample, known[field]),
            zone=zone,
            order=order,
            decimal=decimal,
            unit=_unit_of(field, known[field], options),
        )
        for field in TIMES
        if field in known
    }
    times = Times(moments, zone, order, decimal)
    _check_serial_days(columns, times, scan, options)
    duration = None
    if "duration" in columns:
        duration = duration_column(known, scan.sample, times, options.units)
        _check_units(columns, times, duration, options)
    return _Reading(columns, times, duration)


def _unit_of(field: str, column: str, options: ReadingOptions) -> Unit | None:
    """Return the unit of a column of moments: as it was said, by its name, or as submissions'."""
    return options.units.get(field) or unit_in(column) or options.units.get("submit")


def _check_serial_days(
    columns: Mapping[str, str], times: Times, scan: TableScan, options: ReadingOptions
) -> None:
    """Raise TraceQuestion for numbers that may be days, as spreadsheets store moments.

    Days since 1900 of the years 2000 to 2050, most of them with a part of a day.
    """
    for field in TIMES:
        name = columns.get(field)
        if name is None or _unit_of(field, name, options) is not None:
            continue
        known = times.columns[name]
        numbers = [number_by(times.decimal, text) for text in cells_of(scan.sample, name)]
        parts = sum(number is not None and not number.is_integer() for number in numbers)
        if (
            known.is_number
            and _IN_DAYS[0] < (known.middle or 0.0) < _IN_DAYS[1]
            and (2 * parts > len(numbers))
        ):
            raise TraceQuestion(
                f"{name} holds numbers such as a spreadsheet's days",
                field="units",
                about=field,
                choices=[Unit.DAYS, Unit.SECONDS],
            )


def _check_units(
    columns: Mapping[str, str], times: Times, duration: DurationColumn, options: ReadingOptions
) -> None:
    """Raise TraceQuestion where durations have a unit, and submissions only numbers."""
    name = columns["submit"]
    is_known = "submit" in options.units or unit_in(name) is not None
    if is_known or not times.columns[name].is_relative or duration.unit is Unit.SECONDS:
        return
    raise TraceQuestion(
        f"{name} names no unit, and {duration.name} is in {duration.unit.name.lower()}",
        field="units",
        about="submit",
        choices=[Unit.SECONDS, duration.unit],
    )


def _job(reading: _Reading, cells: Cells, row: int) -> ForeignJob:
    def text(field: str) -> str:
        return cells[reading.columns[field]] if field in reading.columns else ""

    if text("state").strip().upper() in _NOT_ENDED:
        raise _not_ended(reading.columns["state"], text("state"))
    return ForeignJob(
        row=row,
        name=text("name") or f"line-{row}",
        submitted=reading.times.cell(cells, reading.columns["submit"]),
        ran_seconds=_ran_seconds(reading, cells),
        gpu_count=_gpu_count(reading, cells),
        gpu_types=types_in(text("gpu_type")),
        tenant=text("tenant"),
        state=text("state"),
    )


def _not_ended(column: str, value: str) -> Unusable:
    remedy = "Write the file again once it has ended."
    return Unusable("it had not ended", column=column, value=value, remedy=remedy)


def _gpu_seconds(reading: _Reading, cells: Cells) -> float:
    return _ran_seconds(reading, cells) * _gpu_count(reading, cells)


def _gpu_count(reading: _Reading, cells: Cells) -> int:
    column = reading.columns["gpus"]
    return whole_count(number_by(reading.times.decimal, cells[column]), column, cells[column])


def _ran_seconds(reading: _Reading, cells: Cells) -> float:
    if reading.duration is not None:
        return reading.duration.seconds(cells)
    start, end = reading.columns["start"], reading.columns["end"]
    if is_absent(cells[start]):
        return ran(0.0, start, cells[start])
    if is_absent(cells[end]):
        raise _not_ended(end, cells[end])
    return reading.times.elapsed(cells, start, end)


def _notes(reading: _Reading, scan: TableScan, options: ReadingOptions) -> Found:
    for name, column in reading.times.columns.items():
        if column.is_number and name in reading.columns.values():
            yield Note(f"Numbers of {name} count as {column.unit.name.lower()}.")
    if reading.duration is not None and reading.duration.note:
        yield Note(reading.duration.note)
    yield from scan.zone_notes(options)
