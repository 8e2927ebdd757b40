"""SenseTime's Helios traces: `cluster_log.csv` of one cluster (S-Lab-System-Group/HeliosData)."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from maat.workloads.formats.foreign.records import (
    Cells,
    ForeignFormat,
    ForeignJob,
    Found,
    count_cell,
    seconds_cell,
)
from maat.workloads.formats.foreign.tables import jobs_of_table
from maat.workloads.formats.foreign.times import Times

COLUMNS = ("job_id", "user", "gpu_num", "state", "submit_time", "duration")


def read(source: Path | str) -> Found:
    return jobs_of_table(
        source,
        partial(_job, Times()),
        needs=[(name,) for name in COLUMNS],
        remedy="Give cluster_log.csv of Earth, Saturn, Uranus or Venus as published.",
    )


def _job(times: Times, cells: Cells, row: int) -> ForeignJob:
    return ForeignJob(
        row=row,
        name=cells["job_id"],
        gpu_count=count_cell(cells, "gpu_num"),
        submitted=times.cell(cells, "submit_time"),
        ran_seconds=seconds_cell(cells, "duration"),
        gpu_type=None,
        tenant=cells.get("vc") or cells["user"],
        state=cells["state"],
    )


HELIOS = ForeignFormat(
    title="Helios (cluster_log.csv)",
    read=read,
    about="Each job with GPUs that ran, for its duration. The trace names no GPU type. Its tenant "
    "is its virtual cluster.",
)
