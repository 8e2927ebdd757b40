"""How a job's life was spent, from its events, the reasons of its waits and its GPUs. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from maat.scheduling.explain import ReasonCode
from maat.vocabulary import JobState

_PARTS: Mapping[JobState, str] = {
    JobState.SUBMITTED: "waiting",
    JobState.PROFILING: "profiling",
    JobState.PENDING: "waiting",
    JobState.PREEMPTED: "waiting",
    JobState.PAUSED: "paused",
    JobState.STARTING: "starting",
    JobState.RESTARTING: "starting",
    JobState.RUNNING: "running",
}
PARTS = tuple(dict.fromkeys(_PARTS.values()))
_WAITS = frozenset({"waiting", "profiling"})
MOST_REASONS = 8


class At(NamedTuple):
    """What holds from a cluster time on: a state, or the code of a reason."""

    seconds: float
    what: str


class Holding(NamedTuple):
    """A span in which a job held GPUs, cluster seconds."""

    gpu_type: str
    gpus: int
    begin: float
    end: float


def gpus_held(spans: Iterable[Holding]) -> dict[str, object]:
    """Return for how long a job held GPUs, and their GPU-hours by type."""
    hours, by_type = 0.0, defaultdict[str, float](float)
    for span in spans:
        length = max(span.end - span.begin, 0.0) / 3600
        hours += length
        by_type[span.gpu_type] += span.gpus * length
    return {"held_hours": hours, "held_gpu_hours": dict(by_type)}


def life_spent(
    states: Iterable[At], reasons: Iterable[At], *, submitted: float, finished: float
) -> dict[str, object]:
    """Return for how long a job waited, started and ran, and why it waited.

    `states`: its changes of state, in order; `reasons`: those of its waits, in order. The seconds
    of all parts sum to its JCT, those of the reasons to its waits.
    """
    changes = [At(submitted, JobState.SUBMITTED), *states]
    spans = list(_spans(changes, submitted, finished))
    seconds: dict[str, float] = defaultdict(float)
    why: dict[str, float] = defaultdict(float)
    known = [At(submitted, ReasonCode.NOT_YET_CONSIDERED), *reasons]
    for begin, end, state in spans:
        part = _PARTS.get(JobState(state))
        if part is None:
            continue
        seconds[part] += end - begin
        if part in _WAITS:
            for since, until, code in _spans(known, begin, end):
                why[code] += until - since
    return {
        **{f"{part}_seconds": seconds[part] for part in PARTS},
        "preemptions": sum(one.what == JobState.PREEMPTED for one in changes),
        "starts": sum(one.what in (JobState.STARTING, JobState.RESTARTING) for one in changes),
        "reasons": [
            {"code": code, "seconds": length}
            for code, length in sorted(why.items(), key=lambda one: -one[1])[:MOST_REASONS]
        ],
    }


def _spans(changes: Sequence[At], begin: float, end: float) -> Iterator[tuple[float, float, str]]:
    """Yield what held between two times, in order: from, to, what."""
    ends = [*(one.seconds for one in changes[1:]), end]
    for one, until in zip(changes, ends, strict=True):
        first, last = max(one.seconds, begin), min(until, end)
        if last > first:
            yield first, last, one.what
