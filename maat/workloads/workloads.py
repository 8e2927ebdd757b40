"""Workloads: the jobs of a trace by submission time; reads and writes traces.

A trace's format is recognised by its header, or by its tab-separated cells if it has none. A
further format is one entry in FORMATS.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Any

from maat.csv_input import CsvInput, Row, read_csv
from maat.models.profiles import MODEL_BY_FOLDER
from maat.models.throughput_table import EPOCH_SAMPLES, JobType, steps_of_an_epoch
from maat.scheduling.errors import TraceError
from maat.scheduling.job import JobDeclaration
from maat.scheduling.regimes import Regime
from maat.vocabulary import MAX_GPUS, MAX_PRIORITY, MAX_SECONDS, MAX_TEXT, Adaptivity, WorkloadKind
from maat.workloads.batch_regimes import Adaptation, regimes_of

MAX_JOBS = 200_000
MAX_EPOCHS = 1_000_000
MAX_WORK_SCALE = 1e8


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceJob(JobDeclaration):
    """A declaration with the time of its submission.

    GPU count and batch size are what the owner asked for; an adaptive job is not bound to them.

    Attributes:
        name: Identifies the job within its trace.
        adaptivity: None if the trace leaves it open, for a study to draw.
        max_gpus: None for the most that the fidelity gives any job.
        regimes: The batch sizes that the job sets itself; such a job is rigid.
        weight: Its weight in policies that share time, 1 as a rule.
    """

    submit_seconds: float
    gpu_count: int
    tenant: str = "default"
    regimes: tuple[Regime, ...] = ()
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Workload:
    """Jobs in order of submission.

    `format`: the name of the trace format, or of the generator's family.
    """

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
    """A trace format: the columns that identify it, and how to read a row.

    `model_column`, `name_column`: the fields that errors name for an unknown model and for a
    repeated name. `header`: False if the file does not name the columns but separates them by tabs,
    in this order.
    """

    columns: tuple[str, ...]
    model_column: str
    name_column: str
    parse: Callable[[Row], TraceJob]
    header: bool = True


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


def write_workload(workload: Workload) -> str:
    """Return the workload as CSV text in the `sia` format.

    Has the optional columns in which any job differs from the default. Reading it gives the same
    jobs. Raises TraceError if a job sets its own batch sizes: the format has no column for that.
    """
    own = next((job for job in workload.jobs if job.regimes), None)
    if own is not None:
        raise TraceError(
            "sets its own batch sizes, which this format cannot say",
            field="name",
            value=own.name,
            remedy="Use the trace as it was published.",
            source=workload.name,
        )
    more = [
        name
        for name in OPTIONAL
        if any(getattr(job, name) != DEFAULTS[name] for job in workload.jobs)
    ]
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((*SIA_COLUMNS, *more))
    for job in workload.jobs:
        fixed = (job.name, job.submit_seconds, job.model, job.gpu_count, job.batch_size)
        writer.writerow(_cell(value) for value in (*fixed, *(getattr(job, name) for name in more)))
    return text.getvalue()


def _cell(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case float():
            return repr(value)
        case tuple():
            return " ".join(value)
    return str(value)


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


def _name(row: Row, column: str) -> str:
    text = row.cells[column]
    if not text or len(text) > MAX_TEXT or not text.isprintable():
        raise row.blame(
            "is no usable name",
            field=column,
            value=text,
            row=row.line,
            remedy=f"Give 1 to {MAX_TEXT} printable characters.",
        )
    return text


# --- the format of the Pollux and Sia artifacts ---

SIA_COLUMNS = ("name", "time", "application", "num_replicas", "batch_size")

# Optional columns of a trace, by field; an empty cell leaves the default.
OPTIONAL: Mapping[str, Callable[[Row, str], object]] = {
    "work_scale": lambda row, column: row.number(column, above=0.0, maximum=MAX_WORK_SCALE),
    "adaptivity": lambda row, column: row.one_of(column, Adaptivity),
    "workload_kind": lambda row, column: row.one_of(column, WorkloadKind),
    "promised_seconds": lambda row, column: row.number(column, above=0.0, maximum=MAX_SECONDS),
    "preemptible": lambda row, column: row.one_of(column, _Truth) is _Truth.TRUE,
    "tenant": _name,
    "min_gpus": lambda row, column: row.whole_number(column, maximum=MAX_GPUS),
    "max_gpus": lambda row, column: row.whole_number(column, maximum=MAX_GPUS),
    "max_batch_size": lambda row, column: row.whole_number(column),
    "gpu_types": lambda row, column: tuple(_name(row, column).split()),
    "priority": lambda row, column: row.whole_number(
        column, minimum=-MAX_PRIORITY, maximum=MAX_PRIORITY
    ),
}
DEFAULTS = {field.name: field.default for field in fields(TraceJob) if field.name in OPTIONAL}


def _sia_job(row: Row) -> TraceJob:
    model = row.cells["application"]
    given: dict[str, Any] = {
        name: read(row, name) for name, read in OPTIONAL.items() if row.cells.get(name)
    }
    job = TraceJob(
        name=_name(row, "name"),
        submit_seconds=row.number("time", minimum=0.0, maximum=MAX_SECONDS),
        model=MODEL_BY_FOLDER.get(model, model),
        gpu_count=row.whole_number("num_replicas", maximum=MAX_GPUS),
        batch_size=row.whole_number("batch_size") if row.cells["batch_size"] else None,
        **given,
    )
    _check_promise(job, row)
    _check_bounds(job, row)
    return job


def _check_bounds(job: TraceJob, row: Row) -> None:
    most = MAX_GPUS if job.max_gpus is None else job.max_gpus
    if not job.min_gpus <= job.gpu_count <= most:
        remedy = (
            f"Give {job.min_gpus} to {most}."
            if job.min_gpus <= most
            else "Give a max_gpus of at least min_gpus."
        )
        raise row.blame(
            "is not between min_gpus and max_gpus",
            field="num_replicas",
            value=job.gpu_count,
            row=row.line,
            remedy=remedy,
        )
    if (
        job.max_batch_size is not None
        and job.batch_size is not None
        and job.batch_size > job.max_batch_size
    ):
        remedy = f"Give at most {job.max_batch_size}, or a larger max_batch_size."
        raise row.blame(
            "is above max_batch_size",
            field="batch_size",
            value=job.batch_size,
            row=row.line,
            remedy=remedy,
        )


def _check_promise(job: TraceJob, row: Row) -> None:
    bound = job.workload_kind is WorkloadKind.LATENCY_INFERENCE
    if bound and job.promised_seconds is None:
        remedy = "Give the seconds in which it answers batch_size requests."
        raise row.blame(
            "is missing for latency-bound inference",
            field="promised_seconds",
            row=row.line,
            remedy=remedy,
        )
    if bound and job.batch_size is None:
        remedy = "Give how many requests it answers together."
        raise row.blame(
            "is missing for latency-bound inference",
            field="batch_size",
            row=row.line,
            remedy=remedy,
        )
    if not bound and job.promised_seconds is not None:
        remedy = "Give it with workload_kind latency-inference, else leave it empty."
        raise row.blame(
            "belongs to latency-bound inference alone",
            field="promised_seconds",
            value=job.promised_seconds,
            row=row.line,
            remedy=remedy,
        )


class _Truth(StrEnum):
    TRUE = "true"
    FALSE = "false"


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


# --- the format of the Gavel and Shockwave artifacts ---

SHOCKWAVE_COLUMNS = (
    "job_type",
    "command",
    "working_directory",
    "steps_argument",
    "needs_data_folder",
    "total_steps",
    "scale_factor",
    "mode",
    "priority_weight",
    "slo",
    "duration",
    "arrival_time",
)


def _shockwave_job(row: Row) -> TraceJob:
    """Read a row. Steps become epochs, the mode becomes the batch size of each epoch.

    Jobs are numbered from 0, as published.
    """
    job_type, gpus = _job_type(row), row.whole_number("scale_factor", maximum=MAX_GPUS)
    epochs = row.whole_number("total_steps") / steps_of_an_epoch(job_type)
    if epochs > MAX_EPOCHS:
        raise row.blame(
            f"are more than {MAX_EPOCHS} epochs",
            field="total_steps",
            value=row.cells["total_steps"],
            row=row.line,
            remedy="Correct it.",
        )
    batch = job_type.per_gpu_batch_size
    regimes = regimes_of(
        _adaptation(row),
        job_type.model,
        per_gpu_batch_size=batch,
        gpu_count=gpus,
        epochs=math.ceil(epochs),
    )
    return TraceJob(
        name=f"job-{row.line - 1}",
        submit_seconds=row.number("arrival_time", minimum=0.0, maximum=MAX_SECONDS),
        model=job_type.model,
        gpu_count=gpus,
        batch_size=batch * gpus,
        work_scale=epochs,
        regimes=regimes,
        weight=row.number("priority_weight", above=0.0, maximum=1e6),
    )


def _job_type(row: Row) -> JobType:
    text = row.cells["job_type"]
    job_type = JobType.parse(text)
    if job_type is None or job_type.model not in EPOCH_SAMPLES:
        raise row.blame(
            "is no job type of a known model",
            field="job_type",
            value=text,
            row=row.line,
            remedy="Write for example ResNet-18 (batch size 32); "
            f"known are {', '.join(EPOCH_SAMPLES)}.",
        )
    return job_type


def _adaptation(row: Row) -> Adaptation:
    text = row.cells["mode"]
    if text not in list(Adaptation):
        raise row.blame(
            "is no mode of adaptation",
            field="mode",
            value=text,
            row=row.line,
            remedy=f"Use one of: {', '.join(Adaptation)}.",
        )
    return Adaptation(text)


FORMATS: Mapping[str, TraceFormat] = {
    "sia": TraceFormat(
        columns=SIA_COLUMNS, model_column="application", name_column="name", parse=_sia_job
    ),
    "pal": TraceFormat(
        columns=PAL_COLUMNS, model_column="model", name_column="job_id", parse=_pal_job
    ),
    "shockwave": TraceFormat(
        columns=SHOCKWAVE_COLUMNS,
        model_column="job_type",
        name_column="job_type",
        parse=_shockwave_job,
        header=False,
    ),
}
