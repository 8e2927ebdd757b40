"""The records of a trace, read one by one: one that cannot be read costs no other record.

Knows lines and cells, not their meaning. `left_out` says in words what was lost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from maat.csv_input import Blame, Row
from maat.scheduling.errors import InputError, TraceError
from maat.workloads.formats.foreign.record_table import (
    read_records,
    readable_twice,
    text_lines,
)

_MOST_TOLD = 5
_MOST_OF_A_VALUE = 40


@dataclass(frozen=True, slots=True)
class TraceRecords:
    """An opened trace: its columns, and its records, which can be read once.

    A record is a row, or the error that says why its cells cannot be told apart. `not_utf8`: lines
    read so far that were not UTF-8, and were read as Windows-1252.
    """

    header: tuple[str, ...]
    records: Iterator[Row | InputError]
    blame: Blame
    not_utf8: list[int] = field(default_factory=list)

    def require(self, columns: Collection[str]) -> None:
        """Raise an error naming the first of `columns` that the header lacks or has twice."""
        for column in columns:
            if column in self.header:
                continue
            is_twice = f"{column} (column " in " ".join(self.header)
            raise self.blame(
                "column stands twice in the header" if is_twice else "column is missing",
                field=column,
                value=None if is_twice else ", ".join(self.header),
                row=1,
                remedy="Keep one of them."
                if is_twice
                else f"The header needs the columns {', '.join(columns)}.",
            )


def open_trace(
    source: Path | str, *, name: str | None, headerless: Collection[Sequence[str]]
) -> TraceRecords:
    """Open a trace file (Path) or the text of one (str).

    `headerless`: columns of tab-separated layouts without a header, recognised by the number of
    cells in the first line. Raises TraceError for what has no header, and is no such layout.
    """
    blame = Blame(TraceError, name or (str(source) if isinstance(source, Path) else None))
    source = readable_twice(source, blame)
    first = next((line for line in text_lines(source, blame) if line.text.strip()), None)
    if first is not None and "\0" in first.text:
        raise blame(
            "is a binary file, not CSV", field="file", remedy="Give a CSV text file in UTF-8."
        )
    for columns in headerless:
        if first is not None and first.text.count("\t") == len(columns) - 1 > 0:
            not_utf8: list[int] = []
            tabbed = _tabbed(source, tuple(columns), blame, not_utf8)
            return TraceRecords(tuple(columns), tabbed, blame, not_utf8)
    table = read_records(source, error=TraceError, name=name)
    records = (
        _row(line, cells, table.header, blame, problem=problem)
        for line, cells, problem in table.records
    )
    return TraceRecords(table.header, records, blame, table.not_utf8)


def _tabbed(
    source: Path | str, columns: tuple[str, ...], blame: Blame, not_utf8: list[int]
) -> Iterator[Row | InputError]:
    for line in text_lines(source, blame):
        if not line.text.strip():
            continue
        if not line.is_utf8:
            not_utf8.append(line.number)
        cells = tuple(cell.strip() for cell in line.text.split("\t"))
        wrong = "" if line.is_whole else "it is too long"
        yield _row(line.number, cells, columns, blame, problem=wrong)


def _row(
    line: int, cells: tuple[str, ...], columns: tuple[str, ...], blame: Blame, *, problem: str
) -> Row | InputError:
    if len(cells) == len(columns) and not problem:
        return Row(line, dict(zip(columns, cells, strict=True)), blame)
    counts = f"has {len(cells)} cells where there are {len(columns)} columns"
    return blame(
        counts if len(cells) != len(columns) else problem,
        field="line",
        value=",".join(cells)[:200],
        row=line,
        remedy="Complete the row.",
    )


@dataclass(slots=True)
class LeftOut:
    """The records that became no job: how many, the first of them and why, and their GPU-hours.

    `counts`: what the work of a record counts, where that is no time.
    """

    counts: str = ""
    records: int = 0
    errors: list[InputError] = field(default_factory=list)
    count: int = 0
    gpu_hours: float = 0.0
    without_hours: int = 0

    def add(self, error: InputError, gpu_hours: float | None) -> None:
        self.count += 1
        self.without_hours += gpu_hours is None
        self.gpu_hours += gpu_hours or 0.0
        if len(self.errors) < _MOST_TOLD:
            self.errors.append(error)

    @property
    def sentence(self) -> str:
        """What was left out, with its GPU-hours; "" if nothing was."""
        if not self.count:
            return ""
        records = "record" if self.records == 1 else "records"
        was = "was" if self.count == 1 else "were"
        named = "; ".join(map(_why, self.errors))
        more = f"; and {self.count - len(self.errors)} more" if self.count > _MOST_TOLD else ""
        return (
            f"{self.count:,} of {self.records:,} {records} of the trace {was} left out, "
            f"{self._hours()}: {named}{more}."
        )

    def _hours(self) -> str:
        if self.without_hours == self.count:
            whose = "their" if self.count > 1 else "its"
            why = f", since {whose} work counts {self.counts}" if self.counts else ""
            return f"{whose} GPU-hours unknown{why}"
        unknown = f", and those of {self.without_hours} unknown" if self.without_hours else ""
        return f"with {self.gpu_hours:,.3g} GPU-hours{unknown}"


def _why(error: InputError) -> str:
    value = "" if error.value is None else f", {str(error.value)[:_MOST_OF_A_VALUE]!r}"
    return f"line {error.row} ({error.field} {error.problem}{value})"


def not_utf8_note(lines: Sequence[int]) -> str:
    """Say which lines were read as Windows-1252; "" if none was."""
    if not lines:
        return ""
    named = f"Line {lines[0]} is" if len(lines) == 1 else f"{len(lines)} lines are"
    return f"{named} not UTF-8, read as Windows-1252: letters beyond ASCII may be others."
