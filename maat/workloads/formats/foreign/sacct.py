"""Slurm's accounting: the text of `sacct --parsable2` with its header.

sacct -a -X -P -S 2026-01-01 -o JobIDRaw,User,Account,Submit,Start,End,State,AllocTRES
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from maat.workloads.formats.foreign.records import (
    Cells,
    ForeignFormat,
    ForeignJob,
    Found,
    Unusable,
    gpus,
    is_absent,
    ran,
    seconds_cell,
)
from maat.workloads.formats.foreign.tables import jobs_of_table
from maat.workloads.formats.foreign.times import Times

_IDS = ("JobIDRaw", "JobID")
_RAN = ("ElapsedRaw", "Elapsed", "End")
_GPUS = ("AllocTRES", "ReqTRES", "AllocGRES", "ReqGRES")
_NEEDS = (_IDS, ("Submit",), ("State",), _RAN, _GPUS)
_COMMAND = "sacct -a -X -P -o JobIDRaw,User,Account,Submit,Start,End,State,AllocTRES"
_ENDED = {
    *("COMPLETED", "FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED"),
    *("CANCELLED", "DEADLINE", "BOOT_FAIL", "REVOKED"),
}
# gres/gpu=4, gres/gpu:a100=4; and of older versions gpu:4, gpu:a100:4
_TRES = re.compile(r"(?:gres/)?gpu(?::([^=:,]+))?[=:](\d{1,9})(?=,|$|\()")


def read(source: Path | str) -> Found:
    return jobs_of_table(
        source,
        partial(_job, Times()),
        needs=_NEEDS,
        remedy=f"Write the file with: {_COMMAND}.",
        quoted=False,
    )


def _job(times: Times, cells: Cells, row: int) -> ForeignJob:
    job_id = next(cells[name] for name in _IDS if name in cells)
    if "." in job_id or "." in cells.get("JobID", ""):
        raise Unusable(
            "it is a step of a job, which is counted itself",
            column="JobID",
            value=job_id,
            remedy="Nothing; or leave steps out with sacct -X.",
        )
    state = cells["State"].split(" ")[0].rstrip("+").upper()
    if state not in _ENDED:
        raise Unusable(
            "it had not ended",
            column="State",
            value=cells["State"],
            remedy="Ask sacct again once it has ended.",
        )
    seconds = _ran_seconds(times, cells)
    gpu_type, count = _gpus(cells)
    return ForeignJob(
        row=row,
        name=job_id,
        submitted=times.cell(cells, "Submit"),
        ran_seconds=seconds,
        gpu_count=count,
        gpu_type=gpu_type,
        tenant=cells.get("Account") or cells.get("User") or "",
        state=state,
    )


def _ran_seconds(times: Times, cells: Cells) -> float:
    start = cells.get("Start")
    if start is not None and is_absent(start):
        return ran(0.0, "Start", start)
    for column in ("ElapsedRaw", "Elapsed"):
        if not is_absent(cells.get(column, "")):
            return seconds_cell(cells, column)
    for column in ("Start", "End"):
        if column not in cells:
            raise Unusable(
                "nothing says how long it ran",
                column=column,
                value="",
                remedy="Ask sacct for Start and End, or for ElapsedRaw.",
            )
    return ran(times.cell(cells, "End") - times.cell(cells, "Start"), "End", cells["End"])


def _gpus(cells: Cells) -> tuple[str | None, int]:
    """Return GPU type and count. A total stands beside the counts by type, or alone."""
    column = next((name for name in _GPUS if not is_absent(cells.get(name, ""))), "")
    found = _TRES.findall(cells.get(column, ""))
    typed = {name: int(count) for name, count in found if name and int(count)}
    if len(typed) > 1:
        raise Unusable(
            "it had GPUs of several types",
            column=column,
            value=cells[column],
            remedy="Nothing: a job of Maat has GPUs of one type.",
        )
    total = max([int(count) for _, count in found], default=0)
    where = column or next(name for name in _GPUS if name in cells)
    return next(iter(typed), None), gpus(total, where, cells.get(where, ""))


SACCT = ForeignFormat(
    title="Slurm accounting (sacct -P)",
    read=read,
    about="Each job, and each element of an array, that ended and held GPUs; steps belong to their "
    "job. Its tenant is its account.",
)
