"""Slurm's accounting: the text of `sacct --parsable2` with its header, or `sacct --json`.

SLURM_TIME_FORMAT=%s sacct -a -X -D -P -S 2026-01-01 \
  -o JobIDRaw,User,Account,Submit,Start,End,ElapsedRaw,State,AllocTRES

Without SLURM_TIME_FORMAT=%s it prints local times without a zone. -D: the runs of requeued jobs.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path

from maat.encodings import encoding_of
from maat.scheduling.errors import TraceError
from maat.slurm.accounting import accounting_table
from maat.slurm.gres import GPU, gpus_by_type, resources
from maat.slurm.json_values import SlurmSays, UnreadableAnswer, errors_of, mapping_in
from maat.workloads.formats.foreign.duration_column import check_seconds
from maat.workloads.formats.foreign.numbers import Decimal, plain_number
from maat.workloads.formats.foreign.questions import ReadingOptions
from maat.workloads.formats.foreign.records import (
    Cells,
    ForeignFormat,
    ForeignJob,
    Found,
    Note,
    Run,
    Unusable,
    gpus,
    is_absent,
    ran,
    seconds_cell,
)
from maat.workloads.formats.foreign.runs import joined
from maat.workloads.formats.foreign.scans import TableScan, cells_of, scan_table
from maat.workloads.formats.foreign.tables import first_rows, header_of, jobs_of_table
from maat.workloads.formats.foreign.times import Times, time_column

_IDS = ("JobIDRaw", "JobID")
_ELAPSED = ("ElapsedRaw", "Elapsed")
_RAN = (*_ELAPSED, "End")
_PER_NODE = "ReqGRES"  # it repeats --gres
_GPUS = ("AllocTRES", "ReqTRES", "AllocGRES", _PER_NODE)
_NODES = ("NNodes", "AllocNodes")
_NEEDS = (_IDS, ("Submit",), ("State",), _RAN, _GPUS)
_COMMAND = (
    "SLURM_TIME_FORMAT=%s sacct -a -X -D -P -o "
    "JobIDRaw,User,Account,Submit,Start,End,ElapsedRaw,State,AllocTRES"
)
_JSON, _MOST_JSON = re.compile(r"\ufeff?\s*\{"), 64 << 20
_TIMES = ("Submit", "Start", "End")
_RAN_AGAIN = {"REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT", "NODE_FAIL", "PREEMPTED", "RESIZING"}
_ENDED = _RAN_AGAIN | {
    *("COMPLETED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY", "CANCELLED", "DEADLINE"),
    *("BOOT_FAIL", "REVOKED"),
}


def read(source: Path | str, options: ReadingOptions) -> Found:
    source, words = _as_table(source)
    if words:
        yield Note(f"The answer may lack jobs: Slurm says {words}.")
    header = header_of(
        source, needs=_NEEDS, remedy=f"Write the file with: {_COMMAND}.", quoted=False
    )
    scan = scan_table(
        source,
        times=[name for name in _TIMES if name in header],
        ran=_between(header),
        quoted=False,
    )
    scan.check_zone(options)
    yield from scan.zone_notes(options)
    times = _times(scan, options, [name for name in _TIMES if name in header])
    _check_elapsed(source, header, times)
    jobs = jobs_of_table(
        source, partial(_job, times), gpu_seconds_of=partial(_gpu_seconds, times), quoted=False
    )
    yield from joined(jobs)


def _between(header: Sequence[str]) -> tuple[str, str] | None:
    """Return the columns between which a job ran, where none says how long it did."""
    is_told = any(name in header for name in _ELAPSED)
    return None if is_told or not {"Start", "End"} <= set(header) else ("Start", "End")


def _check_elapsed(source: Path | str, header: Sequence[str], times: Times) -> None:
    elapsed = next((name for name in _ELAPSED if name in header), None)
    if elapsed is not None and {"Start", "End"} <= set(header):
        check_seconds(elapsed, "Start", "End", first_rows(source, quoted=False), times)


def _as_table(source: Path | str) -> tuple[Path | str, str]:
    """Return sacct's JSON as the table that it writes otherwise, and the errors that it tells.

    A table stays as it is. An answer may have errors and jobs, which count; raises TraceError for
    one without jobs.
    """
    text = _json_in(source)
    if text is None:
        return source, ""
    if len(text) > _MOST_JSON:
        raise _no_json(f"has more than {_MOST_JSON >> 20} MiB", source)
    try:
        data = mapping_in(text)
        words = errors_of(data)
        if words and not data.get("jobs"):
            raise SlurmSays(f"Slurm says: {words}. See whether slurmdbd answers sacctmgr.")
        return accounting_table(data), words
    except UnreadableAnswer as wrong:
        raise _no_json(f"is no answer of sacct --json: {str(wrong)[:200]}", source) from None


def _json_in(source: Path | str) -> str | None:
    """Return the text if it begins as JSON does; a file that cannot be read is refused later."""
    if isinstance(source, str):
        return source.removeprefix("\ufeff") if _JSON.match(source) else None
    try:
        with source.open("rb") as raw:
            encoding = encoding_of(raw.peek()[:4096])
            opened = io.TextIOWrapper(raw, encoding=encoding, errors="replace")
            begun = opened.read(256).removeprefix("\ufeff")
            return begun + opened.read(_MOST_JSON + 1) if _JSON.match(begun) else None
    except OSError:
        return None


def _no_json(problem: str, source: Path | str) -> TraceError:
    return TraceError(
        problem,
        field="text",
        remedy=f"Write the file with: {_COMMAND}.",
        source=str(source) if isinstance(source, Path) else None,
    )


def _times(scan: TableScan, options: ReadingOptions, names: Sequence[str]) -> Times:
    zone = options.tzinfo()
    columns = {
        name: time_column(
            name,
            cells_of(scan.sample, name),
            zone=zone,
            order=options.dates,
            decimal=Decimal.POINT,
        )
        for name in names
    }
    return Times(columns, zone, options.dates)


def _job(times: Times, cells: Cells, row: int) -> ForeignJob:
    id_column = next(name for name in _IDS if name in cells)
    job_id = cells[id_column]
    if not job_id:
        raise Unusable(
            "it has no job id", column=id_column, value="", remedy="Ask sacct for it again."
        )
    if "." in job_id or "." in cells.get("JobID", ""):
        raise Unusable(
            "it is a step of a job, which is counted itself",
            column="JobID",
            value=job_id,
            remedy="Nothing; or leave steps out with sacct -X.",
            gpu_seconds=0.0,
        )
    state = cells["State"].split(" ")[0].rstrip("+").upper()
    if not state:
        raise Unusable(
            "nothing says whether it ended",
            column="State",
            value="",
            remedy="Ask sacct for its state again.",
        )
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
        gpu_types=() if gpu_type is None else (gpu_type,),
        tenant=cells.get("Account") or cells.get("User") or "",
        state=state,
        run=_run(times, cells, goes_on=state in _RAN_AGAIN),
    )


def _run(times: Times, cells: Cells, *, goes_on: bool) -> Run:
    begins, ends = (
        None if is_absent(cells.get(name, "")) else times.cell(cells, name)
        for name in ("Start", "End")
    )
    owner = "/".join(cells.get(name, "") for name in ("Cluster", "User")).strip("/")
    return Run(begins, ends, goes_on, owner)


def _no_start() -> Unusable:
    remedy = "Ask sacct for it again."
    return Unusable("nothing says when it started", column="Start", value="", remedy=remedy)


def _gpu_seconds(times: Times, cells: Cells) -> float:
    if cells.get("Start") == "":
        raise _no_start()
    try:
        count = _gpus(cells)[1]
    except _SeveralTypes as several:
        count = several.gpu_count
    try:
        return _ran_seconds(times, cells) * count
    except Unusable as wrong:
        if wrong.gpu_seconds is not None or not {"Start", "End"} <= set(cells):
            raise
        return times.elapsed(cells, "Start", "End") * count


def _ran_seconds(times: Times, cells: Cells) -> float:
    start = cells.get("Start")
    if start == "":
        raise _no_start()
    if start is not None and is_absent(start):
        return ran(0.0, "Start", start)
    for column in _ELAPSED:
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
    return times.elapsed(cells, "Start", "End")


def _gpus(cells: Cells) -> tuple[str | None, int]:
    """Return GPU type and count, by the first column that names GPUs."""
    columns = [name for name in _GPUS if not is_absent(cells.get(name, ""))]
    for column in columns:
        if _unread_count(cells[column]):
            raise Unusable(
                "its number of GPUs cannot be read",
                column=column,
                value=cells[column],
                remedy="Correct the record, or ask sacct for it again.",
            )
        counts = _counts(cells[column])
        if counts:
            gpu_type, count = _of_one_type(counts, "TRES" in column, cells, column)
            return gpu_type or _only_type(cells, columns), count
    where = next(iter(columns), next(name for name in _GPUS if name in cells))
    return None, gpus(0, where, cells[where])


def _only_type(cells: Cells, columns: Sequence[str]) -> str | None:
    """Return the type that the columns name, if one: a site may count GPUs without their types."""
    types = {name for column in columns for name in _counts(cells[column]) if name}
    return types.pop() if len(types) == 1 else None


@lru_cache(maxsize=4096)  # most jobs ask for the same as others
def _counts(text: str) -> Mapping[str, int]:
    return gpus_by_type(resources(text), without_count=1)


@lru_cache(maxsize=4096)
def _unread_count(text: str) -> bool:
    """Return whether something stands where a number of GPUs belongs and is none."""
    return any(each.name == GPU and each.unread for each in resources(text))


def _of_one_type(
    counts: Mapping[str, int], is_tres: bool, cells: Cells, column: str
) -> tuple[str | None, int]:
    """Return GPU type and count. In TRES a total stands beside the counts by type, or alone."""
    typed = {name: count for name, count in counts.items() if name}
    total = max(counts.get("", 0), sum(typed.values())) if is_tres else sum(counts.values())
    if len(typed) > 1 or (typed and total > sum(typed.values())):
        raise _SeveralTypes(total, column, cells[column])
    nodes = _node_count(cells, column) if column == _PER_NODE else 1
    return next(iter(typed), None), gpus(total * nodes, column, cells[column])


class _SeveralTypes(Unusable):
    """A job that had GPUs of several types at a time."""

    def __init__(self, gpu_count: int, column: str, value: str) -> None:
        remedy = "Nothing: a job of Maat has GPUs of one type."
        super().__init__("it had GPUs of several types", column=column, value=value, remedy=remedy)
        self.gpu_count = gpu_count


def _node_count(cells: Cells, column: str) -> int:
    """Return how many nodes a job had: what was asked of each of them is not its total."""
    for name in _NODES:
        found = plain_number(cells.get(name, ""))
        if found is not None and found >= 1 and found.is_integer():
            return int(found)
    raise Unusable(
        f"{column} counts the GPUs of each node, and nothing says how many nodes it had",
        column=column,
        value=cells[column],
        remedy="Ask sacct for AllocTRES, or for NNodes.",
    )


SACCT = ForeignFormat(
    title="Slurm accounting (sacct -P, sacct --json)",
    read=read,
    about="Each job, and each element of an array, that ended and held GPUs, with the GPU-seconds "
    "of all its runs; steps belong to their job. Its tenant is its account.",
)
