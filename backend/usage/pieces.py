"""What spans of allocations were used for, in any window of time. Pure.

A span is cut where its job's counters were read, and where another job came to or left its GPUs.
Within a piece, use is spread evenly over time:

    allocated  = share x GPUs x seconds        share = mean over its GPUs of 1 / jobs on the GPU
    restart    = allocated before the job ran  (all of it if it never did)
    used       = allocated - restart           (a profile is neither)
    lost       = the last part of used whose work a failure undid
    useful     = (used - lost) x efficiency
    efficiency = effective samples / samples processed, by the counters; at most 1
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from backend.usage.tally import PARTS, Sums


@dataclass(frozen=True, slots=True)
class Reading:
    """The counters of a job at a moment; None where nobody read them."""

    at: float
    processed: float | None
    gained: float | None
    lost: float | None


@dataclass(frozen=True, slots=True)
class Span:
    """GPUs that a job held. `end`: at most now. `readings`: at its start, between, and at its end.

    `running`: since when the job ran; None if it did not.
    """

    job: int
    gpu_type: str
    gpus: tuple[int, ...]
    begin: float
    end: float
    running: float | None
    for_profile: bool
    readings: tuple[Reading, ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a span with one efficiency and one share of its GPUs. `job`: its number.

    It is used from `used_from` on, and lost from `lost_from` on. `efficiency`: None if it was not
    measured.
    """

    job: int
    gpu_type: str
    gpus: tuple[int, ...]
    begin: float
    end: float
    used_from: float
    lost_from: float
    efficiency: float | None
    for_profile: bool
    share: float = 1.0


def pieces_of(spans: Sequence[Span]) -> list[Piece]:
    """Return the pieces of all spans that overlap in time."""
    return divided([piece for span in spans for piece in _read_pieces(span)])


def held_piece(number: int, gpus: Sequence[int], begin: float, end: float) -> Piece:
    """Return GPUs that were held, of which no more is known. `number`: as `Piece.job`."""
    return Piece(
        number,
        "",
        tuple(gpus),
        begin,
        end,
        used_from=begin,
        lost_from=end,
        efficiency=None,
        for_profile=False,
    )


def divided(pieces: Sequence[Piece]) -> list[Piece]:
    """Return the pieces cut where jobs begin or end to share GPUs, each with its share of them.

    The one rule for all that is summed over jobs: a GPU that k jobs share counts 1/k for each.
    """
    overlaps = _overlaps(pieces)
    if not overlaps:
        return list(pieces)
    return [
        part
        for index, piece in enumerate(pieces)
        for part in (_shared(piece, overlaps[index]) if index in overlaps else (piece,))
    ]


def sums_in(pieces: Sequence[Piece], start: float, end: float) -> Sums:
    """Return the parts of each piece within the window, in GPU milliseconds, shape (P, 6).

    Columns are PARTS.
    """
    if not pieces:
        return np.zeros((0, len(PARTS)), dtype=np.int64)
    columns = np.array(
        [
            (
                p.begin,
                p.end,
                p.used_from,
                p.lost_from,
                1.0 if p.efficiency is None else p.efficiency,
                p.efficiency is None,
                p.for_profile,
                len(p.gpus) * p.share,
            )
            for p in pieces
        ]
    ).T
    begin, finish, used_from, lost_from, efficiency, unmeasured, profile, gpus = columns
    stop, milliseconds = np.minimum(finish, end), gpus * 1000.0

    def since(moment: NDArray[np.float64]) -> Sums:
        held = np.maximum(stop - np.maximum(np.maximum(moment, begin), start), 0.0)
        whole: Sums = np.rint(held * milliseconds).astype(np.int64)
        return whole

    allocated = since(begin)
    is_profile = profile > 0
    used = np.where(is_profile, 0, since(used_from))
    lost = np.where(is_profile, 0, since(lost_from))
    kept = used - lost
    useful = np.rint(kept * efficiency).astype(np.int64)
    return np.stack(
        [
            allocated,
            np.where(is_profile, allocated, 0),
            np.where(is_profile, 0, allocated - used),
            lost,
            useful,
            np.where(unmeasured > 0, kept, 0),
        ],
        axis=1,
    )


def _read_pieces(span: Span) -> Iterator[Piece]:
    """Cut a span where its counters were read."""
    ran = span.end if span.running is None else min(max(span.running, span.begin), span.end)
    for before, after in pairwise(span.readings):
        if after.at <= before.at:
            continue
        begin, end = before.at, after.at
        used_from = min(max(ran, begin), end)
        lost = 0.0 if after.lost is None or before.lost is None else after.lost - before.lost
        seconds = max(lost, 0.0) / max(len(span.gpus), 1)
        yield Piece(
            span.job,
            span.gpu_type,
            span.gpus,
            begin,
            end,
            used_from,
            max(end - seconds, used_from),
            _efficiency(before, after),
            span.for_profile,
        )


def _efficiency(before: Reading, after: Reading) -> float | None:
    if None in (before.processed, before.gained, after.processed, after.gained):
        return None
    processed = (after.processed or 0.0) - (before.processed or 0.0)
    gained = (after.gained or 0.0) - (before.gained or 0.0)
    return min(max(gained / processed, 0.0), 1.0) if processed > 0 else None


Interval = tuple[float, float]
Overlaps = Mapping[int, Mapping[int, Sequence[Interval]]]
"""Of the pieces by their place in the list, and of their GPUs: when others hold these too."""


def _overlaps(pieces: Sequence[Piece]) -> Overlaps:
    held: dict[tuple[str, int], list[tuple[float, float, int]]] = defaultdict(list)
    for index, piece in enumerate(pieces):
        if piece.end > piece.begin:
            for gpu in piece.gpus:
                held[piece.gpu_type, gpu].append((piece.begin, piece.end, index))
    found: dict[int, dict[int, list[Interval]]] = defaultdict(lambda: defaultdict(list))
    for (_, gpu), times in held.items():
        times.sort()
        present: list[tuple[float, float, int]] = []
        for begin, end, index in times:
            present = [one for one in present if one[1] > begin]
            for other_begin, other_end, other in present:
                found[index][gpu].append((other_begin, other_end))
                found[other][gpu].append((begin, end))
            present.append((begin, end, index))
    return found


def _shared(piece: Piece, others: Mapping[int, Sequence[Interval]]) -> Iterator[Piece]:
    """Cut a piece where others come to its GPUs or leave them; each counts an equal share."""
    cuts = {
        time
        for intervals in others.values()
        for pair in intervals
        for time in pair
        if piece.begin < time < piece.end
    }
    for begin, end in pairwise([piece.begin, *sorted(cuts), piece.end]):
        middle = (begin + end) / 2
        jobs = [1 + sum(a <= middle < b for a, b in others.get(gpu, ())) for gpu in piece.gpus]
        yield replace(piece, begin=begin, end=end, share=sum(1 / each for each in jobs) / len(jobs))
