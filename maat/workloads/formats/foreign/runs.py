"""Joins the records of one job's runs, in whatever order they stand.

A scheduler writes a record for every run of a job that was requeued, and may use an id again once
its counter was set back. Records of one id are runs of one job if the earlier one says that the
job went on, or the later one was submitted as the earlier one ended; and no other owner is named.
Else they are jobs of their own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from maat.workloads.formats.foreign.records import Dropped, ForeignJob, Found, FurtherRun, Run

_REQUEUED_WITHIN_SECONDS = 5.0


def joined(read: Found) -> Found:
    """Yield the records with each job's runs as one job, at the place of its first record."""
    kept = list(read)
    by_name: dict[str, list[ForeignJob]] = defaultdict(list)
    for each in kept:
        if isinstance(each, ForeignJob):
            by_name[each.name].append(each)
    becomes: dict[int, ForeignJob | Dropped | FurtherRun] = {}
    for records in by_name.values():
        for result in _jobs_of_one_name(records):
            becomes[result.row] = result
    for each in kept:
        yield becomes[each.row] if isinstance(each, ForeignJob) else each


def _jobs_of_one_name(
    records: Sequence[ForeignJob],
) -> Iterator[ForeignJob | Dropped | FurtherRun]:
    chains: list[list[ForeignJob]] = []
    stood: set[tuple[object, ...]] = set()
    for record in sorted(records, key=_begin):
        run = record.run
        begins_and_owner = (None, "") if run is None else (run.begins, run.owner)
        key = (record.submitted, record.ran_seconds, *begins_and_owner)
        if key in stood:
            yield _repeated(record)
        elif chains and _goes_on(chains[-1][-1], record):
            chains[-1].append(record)
        else:
            chains.append([record])
        stood.add(key)
    for chain in chains:
        job = _as_one(chain)
        yield job
        yield from (FurtherRun(each.row, job.name) for each in chain if each.row != job.row)


def _begin(record: ForeignJob) -> tuple[float, float, int]:
    begins = None if record.run is None else record.run.begins
    return record.submitted, record.submitted if begins is None else begins, record.row


def _goes_on(before: ForeignJob, after: ForeignJob) -> bool:
    earlier, later = before.run, after.run
    if earlier is None or later is None or _are_others(earlier, later):
        return False
    ends = earlier.ends
    if ends is not None and later.begins is not None and later.begins < ends - 1.0:
        return False  # two jobs at a time
    if earlier.goes_on or before.submitted == after.submitted:
        return True
    return ends is not None and abs(after.submitted - ends) <= _REQUEUED_WITHIN_SECONDS


def _are_others(earlier: Run, later: Run) -> bool:
    return bool(earlier.owner and later.owner and earlier.owner != later.owner)


def _repeated(record: ForeignJob) -> Dropped:
    return Dropped(
        record.row,
        "its run stood already",
        "name",
        record.name[:80],
        "Nothing: it counts once.",
        0.0,
    )


def _as_one(chain: Sequence[ForeignJob]) -> ForeignJob:
    """Return the job of all runs, on the GPU count that had most of its GPU-seconds."""
    if len(chain) == 1:
        return chain[0]
    by_count: dict[int, float] = defaultdict(float)
    for each in chain:
        by_count[each.gpu_count] += each.gpu_seconds
    count = max(by_count, key=lambda each: by_count[each])
    types = tuple(dict.fromkeys(name for each in chain for name in each.gpu_types))
    return replace(
        chain[-1],
        row=min(each.row for each in chain),
        submitted=chain[0].submitted,
        ran_seconds=sum(by_count.values()) / count,
        gpu_count=count,
        gpu_types=types,
        state=", ".join(each.state for each in chain if each.state),
    )
