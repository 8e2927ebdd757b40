"""Reads tables of other programs, record by record: one that cannot be used is dropped."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from maat.csv_input import read_table
from maat.scheduling.errors import TraceError
from maat.workloads.formats.foreign.records import Cells, Dropped, ForeignJob, Found, Unusable


def jobs_of_table(
    source: Path | str,
    job_of: Callable[[Cells, int], ForeignJob],
    *,
    needs: Collection[Collection[str]],
    remedy: str,
    quoted: bool = True,
) -> Found:
    """Yield what each line becomes. `needs`: of each group of columns, one must be there.

    Raises TraceError naming the columns that are missing, with `remedy`.
    """
    table = read_table(source, error=TraceError, quoted=quoted)
    for names in needs:
        if not set(names) & set(table.header):
            raise table.blame(
                "column is missing",
                field=" or ".join(names),
                value=", ".join(table.header)[:200],
                row=1,
                remedy=remedy,
            )
    width = len(table.header)
    for line, cells in table.lines:
        if len(cells) != width:
            yield Dropped(
                line,
                f"it has not {width} cells, as the header has",
                "line",
                f"{len(cells)} cells",
                "Separate cells by a sign that stands in none of them.",
            )
            continue
        row = dict(zip(table.header, map(str.strip, cells), strict=True))
        try:
            yield job_of(row, line)
        except Unusable as found:
            yield found.at(line)
