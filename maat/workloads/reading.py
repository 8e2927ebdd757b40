"""Reads traces.

A trace's format is recognised by its header, or by its tab-separated cells if it has none.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from maat.csv_input import Blame, Row, check_unpacked
from maat.scheduling.errors import InputError, TraceError
from maat.workloads.formats import FORMATS
from maat.workloads.formats.cells import TraceFormat
from maat.workloads.formats.pal import PAL_COLUMNS
from maat.workloads.recorded import RECORDED
from maat.workloads.trace_records import LeftOut, TraceRecords, not_utf8_note, open_trace
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

    Jobs are in order of submission. Reading stops at `max_jobs`. A record that is no job is left
    out, and the workload's notes say which and why. Raises TraceError naming row, field, value and
    remedy: if the format is not known, if there are too many jobs, or if no record is a job.
    """
    if isinstance(source, str):
        check_unpacked(source, Blame(TraceError, name))
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
    table = open_trace(source, name=name, headerless=headerless)
    format_name = _recognised(table)
    trace_format = FORMATS[format_name]
    jobs, lost = dict[str, TraceJob](), LeftOut(counts=trace_format.counts)
    for record in table.records:
        lost.records += 1
        try:
            job = _job(record, trace_format, known_models, jobs)
        except InputError as wrong:
            lost.add(wrong, _gpu_hours(record, trace_format))
            continue
        if len(jobs) >= max_jobs:
            raise table.blame(
                f"are more than the {max_jobs} jobs that are read",
                field="rows",
                row=lost.records + 1,
                remedy="Split the trace, or raise the limit.",
            )
        jobs[job.name] = job
    if not jobs:
        raise (
            lost.errors[0]
            if lost.errors
            else table.blame(
                "holds no jobs", field="rows", remedy="Add at least one row below the header."
            )
        )
    ordered = tuple(sorted(jobs.values(), key=lambda job: job.submit_seconds))
    notes = tuple(note for note in (lost.sentence, not_utf8_note(table.not_utf8)) if note)
    named = name if name is not None else _default_name(source)
    return Workload(named, ordered, format_name, notes)


def _job(
    record: Row | InputError,
    trace_format: TraceFormat,
    known_models: Collection[str],
    jobs: Collection[str],
) -> TraceJob:
    """Return the job of a record. Raises InputError; `jobs`: the names before it."""
    if isinstance(record, InputError):
        raise record
    job = trace_format.parse(record)
    _check_model(job, record, trace_format, known_models)
    if job.name in jobs:
        raise record.blame(
            "stands twice",
            field=trace_format.name_column,
            value=job.name,
            row=record.line,
            remedy="Give every job a name of its own.",
        )
    return job


def _gpu_hours(record: Row | InputError, trace_format: TraceFormat) -> float | None:
    """Return the GPU-hours of a record; None if it does not say them."""
    if isinstance(record, InputError) or trace_format.gpu_seconds is None:
        return None
    try:
        seconds = trace_format.gpu_seconds(record)
    except InputError:
        return None
    return None if seconds is None else seconds / 3600.0


def _default_name(source: Path | str) -> str:
    return (
        f"{source.parent.name}/{source.stem}"
        if isinstance(source, Path) and source.parent.name
        else "workload"
    )


def _recognised(table: TraceRecords) -> str:
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
    written = row.cells[trace_format.model_column]
    if job.model not in known_models:
        near = _by_other_letters(job.model, known_models)
        raise row.blame(
            "is no known model",
            field=trace_format.model_column,
            value=written,
            row=row.line,
            remedy=trace_format.model_remedy
            or f"{near}Known are {', '.join(sorted(known_models))}.",
        )
    if RECORDED in known_models:  # only the models that Maat ships may be of another format
        _check_meaning(job.model, row, trace_format, known_models)


def _by_other_letters(model: str, known_models: Collection[str]) -> str:
    near = [name for name in sorted(known_models) if name.lower() == model.lower()]
    return f"Did you mean {' or '.join(near)}? " if near else ""


def _check_meaning(
    model: str, row: Row, trace_format: TraceFormat, known_models: Collection[str]
) -> None:
    """Refuse a name that means another model, or another unit of work, in this format."""
    if model in trace_format.but:
        near = {name for name in known_models if name.lower() == model.lower()} - {model}
        own = f"Write {', '.join(near)}, which is another model; or give" if near else "Give"
        raise row.blame(
            "is a model of PAL's traces, whose jobs are numbers of iterations",
            field=trace_format.model_column,
            value=model,
            row=row.line,
            remedy=f"{own} the trace in PAL's columns: {', '.join(PAL_COLUMNS)}.",
        )
    if trace_format.models is not None and model not in trace_format.models:
        near = {name for name in trace_format.models if name.lower() == model.lower()}
        meant = f"Did you mean {', '.join(sorted(near))}? " if near else ""
        raise row.blame(
            "is no model of which the time of an iteration is known, which this format counts",
            field=trace_format.model_column,
            value=model,
            row=row.line,
            remedy=f"{meant}Use one of: {', '.join(sorted(trace_format.models))}.",
        )
