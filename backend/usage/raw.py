"""Computes what was used in a stretch of time from the raw rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from sqlmodel import Session

from backend.jobs.models import AllocationReading
from backend.usage.pieces import Piece, Reading, Span, pieces_of, sums_in
from backend.usage.repository import (
    EndingRow,
    RoundRow,
    SpanRow,
    endings_between,
    readings_around,
    rounds_between,
    spans_between,
)
from backend.usage.tally import WAITED_BY, Key, Sums, Tally, Waits, keys_of

LATE_SECONDS = 600.0
"""What happens is recorded at most this much later, in cluster time (event_memory.py of the worker:
300 s). So long after its end a day changes no more."""


def raw_tally(session: Session, cluster_id: str, start: float, end: float, *, now: float) -> Tally:
    """Return what was used from `start` to `end`, in cluster seconds, as far as it has passed.

    The window lies within one day: longer ones are added up by day, so that days that were summed
    up and days that were not give the same.
    """
    end = min(end, now)
    tally = Tally()
    if end <= start:
        return tally
    # A job's first span may be recorded a little later than its start.
    rows = spans_between(session, cluster_id, start, end + LATE_SECONDS)
    readings = readings_around(session, cluster_id, start, end)
    jobs, keys = _jobs(rows)
    spans = [_span(row, jobs[row.job_id], readings, now) for row in rows]
    endings = endings_between(session, cluster_id, start, end)
    pieces = [*pieces_of(spans), *_endings(endings, jobs, keys, now)]
    _add_use(tally, pieces, keys, start, end)
    _add_waits(tally, rows, start, end)
    rounds = rounds_between(session, cluster_id, start, end)
    for gpu_type, sums in capacity_between(rounds, start, end).items():
        tally.capacity[gpu_type] += sums
    return tally


Keys = list[Sequence[Key]]


def _jobs(rows: Sequence[SpanRow]) -> tuple[dict[str, int], Keys]:
    """Number the jobs; return what each one's use counts for."""
    jobs: dict[str, int] = {}
    keys: Keys = []
    for row in rows:
        if row.job_id not in jobs:
            jobs[row.job_id] = len(keys)
            keys.append(keys_of(row.tenant_id, row.owner_id, row.model, dict(row.labels)))
    return jobs, keys


def _span(
    row: SpanRow, job: int, readings: Mapping[str, Sequence[AllocationReading]], now: float
) -> Span:
    end = max(now, row.from_seconds) if row.to_seconds is None else row.to_seconds
    last = (
        Reading(end, row.processed_samples, row.gained_samples, row.lost_gpu_seconds)
        if row.to_seconds is None
        else Reading(end, row.processed_after, row.gained_after, row.lost_after)
    )
    between = [
        Reading(one.at_seconds, one.processed_samples, one.gained_samples, one.lost_gpu_seconds)
        for one in readings.get(row.job_id, ())
        if row.from_seconds < one.at_seconds < end
    ]
    first = Reading(row.from_seconds, row.processed_before, row.gained_before, row.lost_before)
    return Span(
        job,
        row.gpu_type,
        tuple(row.gpus),
        row.from_seconds,
        end,
        row.running_seconds,
        row.for_profile,
        (first, *between, last),
    )


def _endings(
    rows: Sequence[EndingRow], jobs: dict[str, int], keys: Keys, now: float
) -> Iterator[Piece]:
    """Yield the pieces in which attempts were ending: held, and not used."""
    for row in rows:
        if row.job_id not in jobs:
            jobs[row.job_id] = len(keys)
            keys.append(keys_of(row.tenant_id, row.owner_id, row.model, dict(row.labels)))
        end = now if row.to_seconds is None else row.to_seconds
        yield Piece(
            jobs[row.job_id],
            row.gpu_type,
            tuple(range(row.gpu_count)),
            row.from_seconds,
            end,
            used_from=end,
            lost_from=end,
            efficiency=None,
            for_profile=False,
        )


def _add_use(tally: Tally, pieces: Sequence[Piece], keys: Keys, start: float, end: float) -> None:
    """Add the pieces: first by job and GPU type, of which there are fewer."""
    sums = sums_in(pieces, start, end)
    places: dict[tuple[int, str], int] = {}
    of_piece = [places.setdefault((piece.job, piece.gpu_type), len(places)) for piece in pieces]
    by_place = np.zeros((len(places), sums.shape[1]), dtype=np.int64)
    np.add.at(by_place, np.array(of_piece, dtype=np.int64), sums)
    for (job, gpu_type), place in places.items():
        if by_place[place].any():
            for key in keys[job]:
                tally.used[key, gpu_type] += by_place[place]


def _add_waits(tally: Tally, rows: Sequence[SpanRow], start: float, end: float) -> None:
    """Add the jobs that were first started in the window, each once."""
    waited: dict[Key, list[float]] = defaultdict(list)
    seen = set[str]()
    for row in rows:
        began = row.started_seconds
        if row.job_id in seen or began is None or not start <= began < end:
            continue
        seen.add(row.job_id)
        for key in keys_of(row.tenant_id, row.owner_id, row.model, {}):
            if key.dimension in WAITED_BY:
                waited[key].append(began - row.submitted_seconds - row.unwaited_seconds)
    for key, seconds in waited.items():
        tally.waits[key].add(Waits.of(seconds))


def capacity_between(rounds: Sequence[RoundRow], start: float, end: float) -> dict[str, Sums]:
    """Return what rounds found usable from `start` to `end`, each until the next one, by type.

    `rounds`: in order; the last one counts until `end`.
    """
    found: dict[str, Sums] = {}
    for at, one in enumerate(rounds):
        until = rounds[at + 1].at_seconds if at + 1 < len(rounds) else end
        seconds = min(until, end) - max(one.at_seconds, start)
        if seconds <= 0:
            continue
        for gpu_type, gpus in one.gpus_by_type.items():
            counts = [gpus["capacity"], gpus.get("fragmented", 0), gpus.get("reserved", 0)]
            sums = np.rint(np.array(counts) * seconds * 1000).astype(np.int64)
            found[gpu_type] = found[gpu_type] + sums if gpu_type in found else sums
    return found
