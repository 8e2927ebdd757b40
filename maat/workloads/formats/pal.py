"""The trace format of the PAL artifact. Its `duration` counts iterations."""

from __future__ import annotations

from maat.csv_input import Row
from maat.vocabulary import MAX_GPUS, MAX_SECONDS
from maat.workloads.formats.cells import MAX_WORK_SCALE, TraceFormat, name_cell
from maat.workloads.workloads import TraceJob

PAL_COLUMNS = ("job_id", "num_gpus", "submit_time", "duration", "model")
PAL_MODELS = frozenset(("BERT", "DCGAN", "GPT2", "PointNet", "resnet50", "vgg19"))
"""Its models, of which the time of an iteration is known. BERT is not the catalog's bert."""


def _pal_job(row: Row) -> TraceJob:
    return TraceJob(
        name=name_cell(row, "job_id"),
        submit_seconds=row.number("submit_time", minimum=0.0, maximum=MAX_SECONDS),
        model=row.cells["model"],
        gpu_count=row.whole_number("num_gpus", maximum=MAX_GPUS),
        work_scale=row.number("duration", above=0.0, maximum=MAX_WORK_SCALE),
    )


PAL = TraceFormat(
    columns=PAL_COLUMNS,
    model_column="model",
    name_column="job_id",
    parse=_pal_job,
    models=PAL_MODELS,
    counts="iterations",
)
