"""Workloads: which jobs are submitted when, read from a trace and written as one. Knows nothing of what a job will take.

A trace's format is recognised by its header. A further format is one entry in FORMATS.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from maat.scheduling.cluster import MAX_GPUS
from maat.scheduling.errors import TraceError
from maat.scheduling.job import MAX_TEXT
from maat.simulation.csv_input import CsvInput, Row, read_csv
from maat.simulation.profiles import MODEL_BY_FOLDER

MAX_JOBS = 200_000
MAX_SECONDS = 1e10
MAX_WORK_SCALE = 1e8


@dataclass(frozen=True, slots=True)
class TraceJob:
    """One submission. `gpu_count` and `batch_size` are what its owner asked for; an adaptive job is not bound to them.

    `batch_size`: total, samples; None where the trace names none. `work_scale`: share of the model's standard training length.
    """

    name: str
    submit_seconds: float
    model: str
    gpu_count: int
    batch_size: int | None = None
    work_scale: float = 1.0


@dataclass(frozen=True, slots=True)
class Workload:
    """Jobs in order of submission. `format`: the name of the trace format, or of the generator's family."""

    name: str
    jobs: tuple[TraceJob, ...]
    format: str

    def __len__(self) -> int:
        return len(self.jobs)

    @property
    def models(self) -> frozenset[str]:
        return frozenset(job.model for job in self.jobs)


@dataclass(frozen=True, slots=True)
class TraceFormat:
    """The columns that tell a format, and how one of its rows is read.

    `model_column`, `name_column`: where an unknown model and a name that stands twice are to be blamed.
    """

    columns: tuple[str, ...]
    model_column: str
    name_column: str
    parse: Callable[[Row], TraceJob]


def read_workload(source: Path | str, *, known_models: Collection[str], max_jobs: int = MAX_JOBS, name: str | None = None) -> Workload:
    """The workload in a trace file (Path) or in the text of one (str). Reading stops at `max_jobs`, whatever the file's size.

    Jobs come in order of submission. Raises TraceError naming row, field, value and remedy.
    """
    if isinstance(source, str) and source and "\n" not in source:
        raise TraceError("is no CSV text", field="trace", value=source, remedy="Give CSV text of several lines, or a Path to read a file.")
    table = read_csv(source, error=TraceError, name=name)
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
                "stands twice", field=trace_format.name_column, value=job.name, row=row.line, remedy="Give every job a name of its own."
            )
        jobs[job.name] = job
    if not jobs:
        raise table.blame("holds no jobs", field="rows", remedy="Add at least one row below the header.")
    ordered = tuple(sorted(jobs.values(), key=lambda job: job.submit_seconds))
    return Workload(name if name is not None else _default_name(source), ordered, format_name)


def write_workload(workload: Workload) -> str:
    """The workload as CSV text in the `sia` format, plus a column work_scale where any job's is not 1. Reading it gives the same jobs."""
    scaled = any(job.work_scale != 1.0 for job in workload.jobs)
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((*SIA_COLUMNS, WORK_SCALE) if scaled else SIA_COLUMNS)
    for job in workload.jobs:
        batch = "" if job.batch_size is None else job.batch_size
        row = (job.name, repr(job.submit_seconds), job.model, job.gpu_count, batch)
        writer.writerow((*row, repr(job.work_scale)) if scaled else row)
    return text.getvalue()


def _default_name(source: Path | str) -> str:
    return f"{source.parent.name}/{source.stem}" if isinstance(source, Path) and source.parent.name else "workload"


def _recognised(table: CsvInput) -> str:
    """The format all of whose columns the header has; else a complaint about what the nearest format misses."""
    for format_name, trace_format in FORMATS.items():
        if set(trace_format.columns) <= set(table.header):
            return format_name
    nearest = max(FORMATS.values(), key=lambda f: len(set(f.columns) & set(table.header)))
    table.require(nearest.columns)
    raise AssertionError("unreachable: require() raises for a column that is missing")


def _check_model(job: TraceJob, row: Row, trace_format: TraceFormat, known_models: Collection[str]) -> None:
    if job.model not in known_models:
        raise row.blame(
            "is no known model",
            field=trace_format.model_column,
            value=job.model,
            row=row.line,
            remedy=f"Known are {', '.join(sorted(known_models))}.",
        )


def _name(row: Row, column: str) -> str:
    text = row.cells[column]
    if not text or len(text) > MAX_TEXT or not text.isprintable():
        raise row.blame("is no usable name", field=column, value=text, row=row.line, remedy=f"Give 1 to {MAX_TEXT} printable characters.")
    return text


# --- the format of the Pollux and Sia artifacts ---

SIA_COLUMNS = ("name", "time", "application", "num_replicas", "batch_size")
WORK_SCALE = "work_scale"


def _sia_job(row: Row) -> TraceJob:
    model = row.cells["application"]
    return TraceJob(
        name=_name(row, "name"),
        submit_seconds=row.number("time", minimum=0.0, maximum=MAX_SECONDS),
        model=MODEL_BY_FOLDER.get(model, model),
        gpu_count=row.whole_number("num_replicas", maximum=MAX_GPUS),
        batch_size=row.whole_number("batch_size") if row.cells["batch_size"] else None,
        work_scale=row.number(WORK_SCALE, above=0.0, maximum=MAX_WORK_SCALE) if WORK_SCALE in row.cells else 1.0,
    )


# --- the format of the PAL artifact: `duration` counts iterations ---

PAL_COLUMNS = ("job_id", "num_gpus", "submit_time", "duration", "model")


def _pal_job(row: Row) -> TraceJob:
    return TraceJob(
        name=_name(row, "job_id"),
        submit_seconds=row.number("submit_time", minimum=0.0, maximum=MAX_SECONDS),
        model=row.cells["model"],
        gpu_count=row.whole_number("num_gpus", maximum=MAX_GPUS),
        work_scale=row.number("duration", above=0.0, maximum=MAX_WORK_SCALE),
    )


FORMATS: Mapping[str, TraceFormat] = {
    "sia": TraceFormat(columns=SIA_COLUMNS, model_column="application", name_column="name", parse=_sia_job),
    "pal": TraceFormat(columns=PAL_COLUMNS, model_column="model", name_column="job_id", parse=_pal_job),
}
