"""What a restart of a job costs, in parts, by its attempts. Pure.

asked to stop -> ended | order to the engine -> processes live -> first report, restore in it
    stop               |        queue        ->          start and restore
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from backend.attempts.models import AttemptRow
from maat.vocabulary import Outcome

ASSUMED_SECONDS: Mapping[str, float] = MappingProxyType(
    {"stop": 5.0, "queue": 1.0, "start": 20.0, "restore": 4.0}
)
"""What is assumed before anything was measured; with each measurement it counts less."""

_ASSUMED_COUNT = 1
_NEWEST = 10  # measurements of a part: a job's checkpoint may grow


@dataclass(frozen=True)
class RestartPart:
    """One part of a restart, s: the estimate, and what it is made of.

    `deviation`: of single measurements; None with fewer than two.
    """

    name: str
    seconds: float
    assumed_seconds: float
    measured: int
    deviation: float | None


def restart_parts(attempts: Iterable[AttemptRow]) -> Sequence[RestartPart]:
    """Return stop, queue, start and restore; `attempts` of one job, oldest first.

    Each is the mean of the newest ten measurements and one assumed value.
    """
    found: dict[str, list[float]] = {name: [] for name in ASSUMED_SECONDS}
    for attempt in attempts:
        for name, seconds in _measured(attempt).items():
            found[name].append(max(seconds, 0.0))
    return [_part(name, seconds[-_NEWEST:]) for name, seconds in found.items()]


def restart_seconds(parts: Iterable[RestartPart]) -> float:
    """Return the seconds of a whole restart."""
    return sum(part.seconds for part in parts)


def _part(name: str, seconds: Sequence[float]) -> RestartPart:
    assumed = ASSUMED_SECONDS[name]
    total = sum(seconds) + assumed * _ASSUMED_COUNT
    return RestartPart(
        name,
        total / (len(seconds) + _ASSUMED_COUNT),
        assumed,
        len(seconds),
        statistics.stdev(seconds) if len(seconds) > 1 else None,
    )


def _measured(attempt: AttemptRow) -> dict[str, float]:
    """Return the parts that this attempt shows."""
    found: dict[str, float] = {}
    asked, ended = attempt.stop_seconds, attempt.ended_seconds
    lived = attempt.outcome == Outcome.STOPPED and attempt.alive_seconds is not None
    if lived and asked is not None and ended is not None:
        found["stop"] = ended - asked
    if attempt.queued_seconds is not None and attempt.alive_seconds is not None:
        found["queue"] = attempt.alive_seconds - attempt.queued_seconds
    if attempt.alive_seconds is not None and attempt.running_seconds is not None:
        restore = attempt.restore_seconds or 0.0
        found["start"] = attempt.running_seconds - attempt.alive_seconds - restore
    if attempt.restore_seconds is not None:
        found["restore"] = attempt.restore_seconds
    return found
