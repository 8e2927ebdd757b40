"""The trace format of the Pollux and Sia artifacts, with Maat's own optional columns."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from enum import StrEnum
from typing import Any

from maat.csv_input import Row
from maat.models.gpu_types import GPU_TYPES
from maat.models.profiles import MODEL_BY_FOLDER
from maat.scheduling.errors import TraceError
from maat.vocabulary import (
    LABEL_KEY,
    LABEL_VALUE,
    LEAST_WEIGHT,
    MAX_GPUS,
    MAX_MOVES_PER_HOUR,
    MAX_PRIORITY,
    MAX_SECONDS,
    MAX_STAY_SECONDS,
    MOST_LABELS,
    MOST_WEIGHT,
    Adaptivity,
    WorkloadKind,
)
from maat.workloads.formats.cells import MAX_WORK_SCALE, TraceFormat, name_cell
from maat.workloads.formats.pal import PAL_MODELS
from maat.workloads.recorded import RECORDED
from maat.workloads.workloads import TraceJob, Workload


class _Truth(StrEnum):
    TRUE = "true"
    FALSE = "false"


def _labels(row: Row, column: str) -> tuple[str, ...]:
    """Read labels, each `key=value`, with spaces between."""
    labels = tuple(row.cells[column].split())
    keys = [label.partition("=")[0] for label in labels]
    if (
        len(set(keys)) < len(labels)
        or len(labels) > MOST_LABELS
        or not all(re.fullmatch(f"{LABEL_KEY}={LABEL_VALUE}", label) for label in labels)
    ):
        raise row.blame(
            "are no labels",
            field=column,
            value=row.cells[column],
            row=row.line,
            remedy=f"Write key=value, at most {MOST_LABELS}, each key once, spaces between.",
        )
    return labels


def _gpu_types(text: str) -> tuple[str, ...]:
    """Return the types of a cell, each once; any names, but A100 is a100."""
    names = (name.lower() if name.lower() in GPU_TYPES else name for name in text.split())
    return tuple(dict.fromkeys(names))


SIA_COLUMNS = ("name", "time", "application", "num_replicas", "batch_size")

# Optional columns of a trace, by field; an empty cell leaves the default.
OPTIONAL: Mapping[str, Callable[[Row, str], object]] = {
    "work_scale": lambda row, column: row.number(column, above=0.0, maximum=MAX_WORK_SCALE),
    "adaptivity": lambda row, column: row.one_of(column, Adaptivity),
    "workload_kind": lambda row, column: row.one_of(column, WorkloadKind),
    "promised_seconds": lambda row, column: row.number(column, above=0.0, maximum=MAX_SECONDS),
    "preemptible": lambda row, column: row.one_of(column, _Truth) is _Truth.TRUE,
    "tenant": name_cell,
    "min_gpus": lambda row, column: row.whole_number(column, maximum=MAX_GPUS),
    "max_gpus": lambda row, column: row.whole_number(column, maximum=MAX_GPUS),
    "max_batch_size": lambda row, column: row.whole_number(column),
    "gpu_types": lambda row, column: _gpu_types(name_cell(row, column)),
    "priority": lambda row, column: row.whole_number(
        column, minimum=-MAX_PRIORITY, maximum=MAX_PRIORITY
    ),
    "weight": lambda row, column: row.number(column, minimum=LEAST_WEIGHT, maximum=MOST_WEIGHT),
    "least_stay_seconds": lambda row, column: row.number(
        column, minimum=0.0, maximum=MAX_STAY_SECONDS
    ),
    "most_moves_per_hour": lambda row, column: row.whole_number(column, maximum=MAX_MOVES_PER_HOUR),
    "labels": _labels,
}
DEFAULTS = {field.name: field.default for field in fields(TraceJob) if field.name in OPTIONAL}


def _sia_job(row: Row) -> TraceJob:
    model = row.cells["application"]
    given: dict[str, Any] = {
        name: read(row, name) for name, read in OPTIONAL.items() if row.cells.get(name)
    }
    job = TraceJob(
        name=name_cell(row, "name"),
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


def _gpu_seconds(row: Row) -> float | None:
    """Return the GPU-seconds of a job as recorded, whose work is seconds."""
    if row.cells["application"] != RECORDED or not row.cells.get("work_scale"):
        return None
    return row.whole_number("num_replicas", maximum=MAX_GPUS) * row.number(
        "work_scale", minimum=0.0
    )


SIA = TraceFormat(
    columns=SIA_COLUMNS,
    model_column="application",
    name_column="name",
    parse=_sia_job,
    but=PAL_MODELS,
    gpu_seconds=_gpu_seconds,
)
