"""Whether it must be asked in which zone local times are: where a clock change decides durations.

Local times without a zone count as UTC. That is an hour wrong for what ran while clocks changed,
and a job that began before a clock was set back may seem to end before it starts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from maat.workloads.formats.foreign.dates import written_date
from maat.workloads.formats.foreign.numbers import is_rare

_NOTABLE = 0.05  # share of a duration from which an hour more or less must be asked about
_LONGEST = timedelta(hours=1 / _NOTABLE)


@lru_cache(maxsize=1)
def _zones() -> tuple[tzinfo, ...]:
    """Return zones on whose days most of the world's clocks change."""
    return tuple(map(ZoneInfo, ("Europe/Berlin", "America/New_York", "Australia/Sydney")))


@dataclass(slots=True)
class ZoneEvidence:
    """How many durations are the time between two local times, and how many depend on the zone."""

    durations: int = 0
    unclear: int = 0
    example: str | None = None

    def see(self, start: str, end: str) -> None:
        first, last = written_date(start, None), written_date(end, None)
        if first is None or last is None or first.has_zone or last.has_zone:
            return
        self.durations += 1
        if depends_on_zone(first.moment, last.moment):
            self.unclear += 1
            self.example = self.example or f"{start} to {end}"

    @property
    def is_open(self) -> bool:
        """Whether so many durations are unclear that the zone must be asked."""
        return not is_rare(self.unclear, self.durations)


def depends_on_zone(begins: datetime, ends: datetime) -> bool:
    """Return whether the time between two local times is notably another one in some zone."""
    written = ends - begins
    if abs(written) > _LONGEST or not _touches_a_sunday(begins, ends):  # clocks change on Sundays
        return False
    return any(
        elapsed >= timedelta() and abs(elapsed - written) > _NOTABLE * abs(written)
        for zone in _zones()
        for elapsed in _elapsed(begins, ends, zone)
    )


def _touches_a_sunday(begins: datetime, ends: datetime) -> bool:
    return begins.weekday() == 6 or ends.weekday() == 6


def _elapsed(begins: datetime, ends: datetime, zone: tzinfo) -> Iterator[timedelta]:
    """Yield the durations that these local times may mean in a zone."""
    for fold in (0, 1):
        for other in (0, 1):
            first = begins.replace(tzinfo=zone, fold=fold)
            yield ends.replace(tzinfo=zone, fold=other).astimezone(UTC) - first.astimezone(UTC)
