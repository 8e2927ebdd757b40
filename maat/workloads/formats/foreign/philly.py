"""Microsoft's Philly trace: the JSON array `cluster_job_log` (msr-fiddle/philly-traces)."""

from __future__ import annotations

import io
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from maat.csv_input import Blame, check_unpacked
from maat.encodings import encoding_of
from maat.scheduling.errors import TraceError
from maat.workloads.formats.foreign.questions import ReadingOptions
from maat.workloads.formats.foreign.records import (
    ForeignFormat,
    ForeignJob,
    Found,
    Unusable,
    gpus,
    is_absent,
    ran,
)
from maat.workloads.formats.foreign.times import Times

_CHUNK = 1 << 20
_MOST_CHARACTERS = 4 << 20  # of one entry
# Where an entry begins after a broken one: keys of a job, not of an attempt.
_NEXT_ENTRY = re.compile(r'\{\s*"(?:status|vc|jobid|submitted_time|user|attempts)"')
_REMEDY = "Give cluster_job_log as published: a JSON array of jobs."


def read(source: Path | str, options: ReadingOptions) -> Found:
    blame = Blame(TraceError, str(source) if isinstance(source, Path) else None)
    times = Times({}, options.tzinfo())
    for number, entry in enumerate(_entries(source, blame), start=1):
        try:
            if isinstance(entry, Unusable):
                raise entry
            yield _job(times, entry, number)
        except Unusable as found:
            yield found.at(number)


def _job(times: Times, entry: object, row: int) -> ForeignJob:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("attempts"), list):
        raise Unusable("it is no job with attempts", column="entry", value=entry, remedy=_REMEDY)
    cells = {
        name: str(entry.get(name) or "")
        for name in ("jobid", "submitted_time", "vc", "user", "status")
    }
    by_count: dict[int, float] = defaultdict(float)
    for attempt in entry["attempts"]:
        count, seconds = _attempt(times, attempt)
        by_count[count] += seconds * count
    count = max(by_count, key=lambda each: by_count[each], default=0)
    if not by_count:
        ran(0.0, "attempts", "[]")
    held = gpus(count, "attempts", f"{count} GPUs")
    return ForeignJob(
        row=row,
        name=cells["jobid"],
        submitted=times.cell(cells, "submitted_time"),
        ran_seconds=ran(sum(by_count.values()) / held, "attempts", "0 s"),
        gpu_count=held,
        gpu_types=(),
        tenant=cells["vc"] or cells["user"],
        state=cells["status"],
    )


def _attempt(times: Times, attempt: Any) -> tuple[int, float]:
    """Return GPUs and seconds of an attempt."""
    try:
        count = sum(len(detail["gpus"]) for detail in attempt["detail"])
        cells = {name: str(attempt.get(name) or "") for name in ("start_time", "end_time")}
    except (TypeError, KeyError, AttributeError):
        raise Unusable(
            "an attempt of it cannot be read", column="attempts", value=attempt, remedy=_REMEDY
        ) from None
    if any(is_absent(text) for text in cells.values()):
        raise Unusable(
            "it had not ended, or an attempt has no times",
            column="attempts",
            value=cells,
            remedy="Nothing: how long it ran is not known.",
        )
    try:
        return count, times.elapsed(cells, "start_time", "end_time")
    except Unusable as wrong:
        if wrong.gpu_seconds == 0.0:  # an attempt of no seconds
            return count, 0.0
        raise


def _entries(source: Path | str, blame: Blame) -> Iterator[object]:
    """Yield the entries of a JSON array, holding one entry and a part of the file at a time.

    An entry that is no JSON, or ends too early, is yielded as Unusable.
    """
    parts = _parts(source, blame)
    text = next(parts, "").lstrip("\ufeff \t\r\n")
    if not text.startswith("["):
        raise blame("is no JSON array", field="file", value=text[:40], remedy=_REMEDY)
    decoder, at = json.JSONDecoder(), 1
    while True:
        while at < len(text) and text[at] in ", \t\r\n":
            at += 1
        if at < len(text) and text[at] == "]":
            return
        try:
            entry, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as wrong:
            more = next(parts, "")
            if more and isinstance(wrong, ValueError) and len(text) - at <= _MOST_CHARACTERS:
                text, at = text[at:] + more, 0
                continue
            yield Unusable(
                "it is no JSON, or ends too early",
                column="entry",
                value=text[at : at + 40],
                remedy=_REMEDY,
            )
            following = _NEXT_ENTRY.search(text := text[at:] + more, 1)
            if following is None:
                return
            at = following.start()
            continue
        yield entry


def _parts(source: Path | str, blame: Blame) -> Iterator[str]:
    if isinstance(source, str):
        check_unpacked(source, blame)
        yield source
        return
    try:
        with source.open("rb") as raw:
            check_unpacked(raw.peek(), blame)
            encoding = encoding_of(raw.peek()[:4096])
            file = io.TextIOWrapper(raw, encoding=encoding, errors="replace")
            while part := file.read(_CHUNK):
                yield part
    except OSError as problem:
        raise blame(
            f"cannot be read: {problem.strerror}",
            field="file",
            remedy="Check the path and that the file may be read.",
        ) from problem


PHILLY = ForeignFormat(
    title="Philly (cluster_job_log)",
    read=read,
    about="Each job with the GPU-seconds of all its attempts, on the count that most of them had. "
    "The trace names no GPU type. Its tenant is its virtual cluster; rows count entries.",
)
