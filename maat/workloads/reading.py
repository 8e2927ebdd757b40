"""Reads traces.

A trace's format is recognised by its header, or by its tab-separated cells if it has none.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from maat.csv_input import CsvInput, Row, read_csv
from maat.scheduling.errors import TraceError
from maat.workloads.formats import FORMATS
from maat.workloads.formats.cells import TraceFormat
from maat.workloads.workloads import TraceJob, Workload

MAX_JOBS = 200_000


def read_workload(
    source: Path | str,
    *,
    known_models: Collection[str],
    max_jobs: int = MAX_JOBS,
    name: str | None = None,
) -> Workload:
    """Return the workload in a trace file (Path) or in the text of one (str).

    Jobs are in order of submission. Reading stops at `max_jobs`. Raises TraceError naming row,
    field, value and remedy.
    """
    if isinstance(source, str) and source and "\n" not in source:
        raise TraceError(
            "is no CSV text",
            field="trace",
            value=source,
            remedy="Give CSV text of several lines, or a Path to read a file.",
        )
    headerless = [
        trace_format.columns for trace_format in FORMATS.values() if not trace_format.header
    ]
    table = read_csv(source, error=TraceError, name=name, headerless=headerless)
    format_name = _recognised(table)
    trace_format = FORMATS[format_name]
    jobs: dict[str, TraceJob] = {}
    for row in table.rows:
        if len(jobs) >= max_jobs:
            raise row.blame(
                f"are more than the {max_jobs} jobs that are read",
                field="rows",
                row=row.line,
                remedy="Split the trace, or raise the limit.",
            )
        job = trace_format.parse(row)
        _check_model(job, row, trace_format, known_models)
        if job.name in jobs:
            raise row.blame(
                "stands twice",
                field=trace_format.name_column,
                value=job.name,
                row=row.line,
                remedy="Give every job a name of its own.",
            )
        jobs[job.name] = job
    if not jobs:
        raise table.blame(
            "holds no jobs", field="rows", remedy="Add at least one row below the header."
        )
    ordered = tuple(sorted(jobs.values(), key=lambda job: job.submit_seconds))
    return Workload(name if name is not None else _default_name(source), ordered, format_name)


def _default_name(source: Path | str) -> str:
    return (
        f"{source.parent.name}/{source.stem}"
        if isinstance(source, Path) and source.parent.name
        else "workload"
    )


def _recognised(table: CsvInput) -> str:
    """Return the format all of whose columns the header has.

    If there is none, raises the error of the nearest format.
    """
    for format_name, trace_format in FORMATS.items():
        if set(trace_format.columns) <= set(table.header):
            return format_name
    nearest = max(
        (f for f in FORMATS.values() if f.header),
        key=lambda f: len(set(f.columns) & set(table.header)),
    )
    table.require(nearest.columns)
    raise AssertionError("unreachable: require() raises for a column that is missing")


def _check_model(
    job: TraceJob, row: Row, trace_format: TraceFormat, known_models: Collection[str]
) -> None:
    if job.model not in known_models:
        raise row.blame(
            "is no known model",
            field=trace_format.model_column,
            value=job.model,
            row=row.line,
            remedy=f"Known are {', '.join(sorted(known_models))}.",
        )
