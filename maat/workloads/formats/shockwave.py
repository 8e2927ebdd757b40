"""The trace formats of the Gavel and Shockwave artifacts.

Both have no header and separate their columns by tabs. Gavel's 10 are Shockwave's 12 without the
mode (its jobs keep their batch size) and the duration. Their models are known by a table of
throughputs, which each artifact brings.
"""

from __future__ import annotations

import math
from dataclasses import replace

from maat.csv_input import Row
from maat.models.throughput_table import EPOCH_SAMPLES, JobType, steps_of_an_epoch
from maat.vocabulary import LEAST_WEIGHT, MAX_GPUS, MAX_SECONDS, MOST_WEIGHT
from maat.workloads.batch_regimes import Adaptation, regimes_of
from maat.workloads.formats.cells import MAX_EPOCHS, TraceFormat
from maat.workloads.workloads import TraceJob

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
GAVEL_COLUMNS = tuple(name for name in SHOCKWAVE_COLUMNS if name not in ("mode", "duration"))
_NEEDS_TABLE = (
    "Give the table of throughputs that the trace was made for, with --profiles: "
    "tacc_throughputs.json of Shockwave, simulation_throughputs.json of Gavel."
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
        _adaptation(row) if "mode" in row.cells else Adaptation.STATIC,
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
        weight=row.number("priority_weight", minimum=LEAST_WEIGHT, maximum=MOST_WEIGHT),
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


SHOCKWAVE = TraceFormat(
    columns=SHOCKWAVE_COLUMNS,
    model_column="job_type",
    name_column="job_type",
    parse=_shockwave_job,
    header=False,
    model_remedy=_NEEDS_TABLE,
)
GAVEL = replace(SHOCKWAVE, columns=GAVEL_COLUMNS)
