"""Reads tables of other programs, record by record: one that cannot be used is dropped."""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import islice
from pathlib import Path

from maat.scheduling.errors import TraceError
from maat.workloads.formats.foreign.record_table import RecordTable, read_records
from maat.workloads.formats.foreign.records import (
    Cells,
    Dropped,
    ForeignJob,
    Found,
    Note,
    Unusable,
)

_SAMPLED_ROWS = 2000

GpuSecondsOf = Callable[[Cells], float]
"""GPU-seconds of a record by its cells; raises Unusable if they do not say."""


def header_of(
    source: Path | str,
    *,
    needs: Collection[Collection[str]],
    remedy: str,
    quoted: bool = True,
) -> tuple[str, ...]:
    """Return the header. `needs`: of each group of columns, one must be there.

    Raises TraceError naming the columns that are missing, with `remedy`.
    """
    table = read_records(source, error=TraceError, quoted=quoted)
    for names in needs:
        if not set(names) & set(table.header):
            raise table.blame(
                "column is missing",
                field=" or ".join(names),
                value=", ".join(table.header)[:200],
                row=1,
                remedy=remedy,
            )
    return table.header


def first_rows(source: Path | str, *, quoted: bool = True) -> list[Cells]:
    """Return the first records whose cells can be told apart. Raises TraceError for no table."""
    table = read_records(source, error=TraceError, quoted=quoted)
    return [
        dict(zip(table.header, record.cells, strict=True))
        for record in islice(table.records, _SAMPLED_ROWS)
        if not record.problem
    ]


def jobs_of_table(
    source: Path | str,
    job_of: Callable[[Cells, int], ForeignJob],
    *,
    gpu_seconds_of: GpuSecondsOf,
    quoted: bool = True,
) -> Found:
    """Yield what each record becomes. `gpu_seconds_of`: what is lost with one that is dropped."""
    table = read_records(source, error=TraceError, quoted=quoted)
    for line, cells, problem in table.records:
        if problem:
            yield _unreadable(line, cells, problem)
            continue
        row = dict(zip(table.header, cells, strict=True))
        try:
            yield job_of(row, line)
        except Unusable as wrong:
            yield wrong.at(line, _gpu_seconds(gpu_seconds_of, row))
    yield from _notes(table)


def _unreadable(line: int, cells: tuple[str, ...], problem: str) -> Dropped:
    remedy = "Separate cells by a sign that stands in none of them, and close quotes."
    return Dropped(line, problem, "line", f"{len(cells)} cells", remedy, None)


def _gpu_seconds(gpu_seconds_of: GpuSecondsOf, row: Cells) -> float | None:
    try:
        return gpu_seconds_of(row)
    except Unusable as wrong:
        return wrong.gpu_seconds


def _notes(table: RecordTable) -> Found:
    count = len(table.not_utf8)
    if count:
        lines = "Line" if count == 1 else f"{count} lines, the first of them line"
        verb = "is" if count == 1 else "are"
        yield Note(
            f"{lines} {table.not_utf8[0]} {verb} not UTF-8, read as Windows-1252: letters beyond "
            "ASCII may be others."
        )
