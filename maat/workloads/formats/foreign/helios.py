"""SenseTime's Helios traces: `cluster_log.csv` of one cluster (S-Lab-System-Group/HeliosData)."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from maat.workloads.formats.foreign.duration_column import check_seconds
from maat.workloads.formats.foreign.questions import ReadingOptions
from maat.workloads.formats.foreign.records import (
    Cells,
    ForeignFormat,
    ForeignJob,
    Found,
    count_cell,
    seconds_cell,
)
from maat.workloads.formats.foreign.tables import first_rows, header_of, jobs_of_table
from maat.workloads.formats.foreign.times import Times

COLUMNS = ("job_id", "user", "gpu_num", "state", "submit_time", "duration")


def read(source: Path | str, options: ReadingOptions) -> Found:
    needs = [(name,) for name in COLUMNS]
    header = header_of(
        source,
        needs=needs,
        remedy="Give cluster_log.csv of Earth, Saturn, Uranus or Venus as published.",
    )
    times = Times({}, options.tzinfo())
    if {"start_time", "end_time"} <= set(header):
        check_seconds("duration", "start_time", "end_time", first_rows(source), times)
    yield from jobs_of_table(source, partial(_job, times), gpu_seconds_of=_gpu_seconds)


def _job(times: Times, cells: Cells, row: int) -> ForeignJob:
    return ForeignJob(
        row=row,
        name=cells["job_id"],
        gpu_count=count_cell(cells, "gpu_num"),
        submitted=times.cell(cells, "submit_time"),
        ran_seconds=seconds_cell(cells, "duration"),
        gpu_types=(),
        tenant=cells.get("vc") or cells["user"],
        state=cells["state"],
    )


def _gpu_seconds(cells: Cells) -> float:
    return count_cell(cells, "gpu_num") * seconds_cell(cells, "duration")


HELIOS = ForeignFormat(
    title="Helios (cluster_log.csv)",
    read=read,
    about="Each job with GPUs that ran, for its duration. The trace names no GPU type. Its tenant "
    "is its virtual cluster.",
)
