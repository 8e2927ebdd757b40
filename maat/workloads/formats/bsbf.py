"""The trace format of the SJF-BSBF artifact: iterations, and the time of one on its own GPUs.

Its models are those of its own cluster (16 RTX 2080 Ti): `bert` and `vgg19` there are neither the
catalog's nor PAL's. So each job is replayed as recorded, for iterations x iteration_time, and keeps
the name of its model as a label. All times are in milliseconds: 294 iterations of 555 have the
`duration` 162000, and the 30 jobs of its cluster run are submitted within 600000, ten minutes.
`duration` itself is that of another run for some jobs, and is not read.
"""

from __future__ import annotations

import re

from maat.csv_input import Row
from maat.vocabulary import LABEL_VALUE, MAX_GPUS, MAX_SECONDS, Adaptivity
from maat.workloads.formats.cells import MAX_WORK_SCALE, TraceFormat, name_cell
from maat.workloads.recorded import RECORDED
from maat.workloads.workloads import TraceJob

BSBF_COLUMNS = ("job_id", "num_gpu", "submit_time", "iterations", "model_name", "iteration_time")


def _bsbf_job(row: Row) -> TraceJob:
    return TraceJob(
        name=name_cell(row, "job_id"),
        submit_seconds=row.number("submit_time", minimum=0.0, maximum=MAX_SECONDS) / 1000.0,
        model=RECORDED,
        gpu_count=_gpus(row),
        work_scale=_seconds(row),
        adaptivity=Adaptivity.RIGID,
        labels=_labels(name_cell(row, "model_name")),
    )


def _gpus(row: Row) -> int:
    return row.whole_number("num_gpu", maximum=MAX_GPUS)


def _seconds(row: Row) -> float:
    iterations = row.number("iterations", above=0.0, maximum=MAX_WORK_SCALE)
    milliseconds = row.number("iteration_time", above=0.0, maximum=MAX_WORK_SCALE)
    return iterations * milliseconds / 1000.0


def _labels(model: str) -> tuple[str, ...]:
    return (f"model={model}",) if re.fullmatch(LABEL_VALUE, model) else ()


BSBF = TraceFormat(
    columns=BSBF_COLUMNS,
    model_column="model_name",
    name_column="job_id",
    parse=_bsbf_job,
    gpu_seconds=lambda row: _gpus(row) * _seconds(row),
)
