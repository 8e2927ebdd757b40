"""Any CSV, by which of its columns means what."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import islice
from pathlib import Path

from maat.csv_input import read_table
from maat.scheduling.errors import TraceError
from maat.workloads.formats.foreign.records import (
    Cells,
    ForeignFormat,
    ForeignJob,
    Found,
    count_cell,
    is_absent,
    ran,
    seconds_cell,
)
from maat.workloads.formats.foreign.tables import jobs_of_table
from maat.workloads.formats.foreign.times import Times

FIELDS: Mapping[str, str] = {
    "submit": "when it was submitted: a date, or seconds",
    "duration": "how long it ran: seconds, or [days-]HH:MM:SS",
    "start": "when it started, where there is no duration",
    "end": "when it ended, where there is no duration",
    "gpus": "how many GPUs it had",
    "name": "its name; else its line",
    "gpu_type": "the type of its GPUs",
    "tenant": "whose it is",
    "state": "how it ended",
}
_EXAMPLE = "submit=SubmitTime, gpus=GPUs, duration=Seconds"


def columns_of(source: Path | str) -> tuple[str, ...]:
    """Return the header of a CSV. Raises TraceError."""
    return read_table(source, error=TraceError).header


def first_lines(source: Path | str, most: int) -> list[list[str]]:
    """Return the cells of the first lines below the header of a CSV. Raises TraceError."""
    table = read_table(source, error=TraceError)
    return [cells for _, cells in islice(table.lines, most)]


def guessed(header: tuple[str, ...]) -> dict[str, str]:
    """Return the columns whose names say what they are, by field."""
    found: dict[str, str] = {}
    words = {
        "submit": ("submit", "arriv", "queued"),
        "start": ("start",),
        "end": ("end", "finish"),
        "duration": ("duration", "elapsed", "runtime", "run_time"),
        "gpu_type": ("gpu_type", "gputype", "gpu type", "device"),
        "gpus": ("gpu",),
        "name": ("job_id", "jobid", "job_name", "name", "id"),
        "tenant": ("tenant", "account", "team", "group", "vc", "user"),
        "state": ("state", "status"),
    }
    for field, parts in words.items():
        free = [column for column in header if column not in found.values()]
        named = [column for part in parts for column in free if part in column.lower()]
        if named:
            found[field] = named[0]
    return found


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
    told = ", ".join(f"{field} = {column}" for field, column in columns.items())
    return ForeignFormat(
        title="CSV",
        read=partial(_read, columns),
        about=f"Each line, read as {told}.",
    )


def _read(columns: Mapping[str, str], source: Path | str) -> Found:
    return jobs_of_table(
        source,
        partial(_job, columns, Times()),
        needs=[(column,) for column in columns.values()],
        remedy="Map a column that the header has.",
    )


def _job(columns: Mapping[str, str], times: Times, cells: Cells, row: int) -> ForeignJob:
    def text(field: str) -> str:
        return cells[columns[field]] if field in columns else ""

    gpu_type = text("gpu_type")
    return ForeignJob(
        row=row,
        name=text("name") or f"line-{row}",
        submitted=times.cell(cells, columns["submit"]),
        ran_seconds=_ran_seconds(columns, times, cells),
        gpu_count=count_cell(cells, columns["gpus"]),
        gpu_type=None if is_absent(gpu_type) else gpu_type,
        tenant=text("tenant"),
        state=text("state"),
    )


def _ran_seconds(columns: Mapping[str, str], times: Times, cells: Cells) -> float:
    if "duration" in columns:
        return seconds_cell(cells, columns["duration"])
    start, end = columns["start"], columns["end"]
    if is_absent(cells[start]):
        return ran(0.0, start, cells[start])
    return ran(times.cell(cells, end) - times.cell(cells, start), end, cells[end])
