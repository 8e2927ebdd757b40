"""Converts between wall time (UTC) and a cluster's own time.

Cluster time counts seconds since the cluster's epoch. A wall clock can be set back or forward while
rounds are made. Cluster time therefore follows the boot clock of the machine that anchored it,
which cannot be set; every round anchors it again. On another machine, or after a restart, it
follows the wall clock and never goes back.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from maat.api.fields import rfc3339

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class ClusterTimes(Protocol):
    """The clock fields of a cluster row.

    The cluster time was `anchor_seconds` at `anchor_wall`, when the machine of `anchor_boot` had
    run for `anchor_boot_seconds`. Unless a pause has stopped it, `speed` cluster seconds pass per
    wall second.
    """

    @property
    def epoch(self) -> datetime: ...
    @property
    def anchor_wall(self) -> datetime: ...
    @property
    def anchor_boot(self) -> str | None: ...
    @property
    def anchor_boot_seconds(self) -> float | None: ...
    @property
    def anchor_seconds(self) -> float: ...
    @property
    def speed(self) -> float: ...
    @property
    def is_stopped(self) -> bool: ...


class AnchoredTimes(ClusterTimes, Protocol):
    """The same, to be anchored again."""

    anchor_wall: datetime
    anchor_boot: str | None
    anchor_boot_seconds: float | None
    anchor_seconds: float
    speed: float
    paused: bool


@dataclass(frozen=True)
class Moment:
    """One reading of the clocks.

    `boot` identifies the machine and its start, None if unknown; `boot_seconds` counts since that
    start.
    """

    wall: datetime
    boot: str | None
    boot_seconds: float


def utc_now() -> datetime:
    return datetime.now(UTC)


def this_moment(wall: datetime | None = None) -> Moment:
    """Read the clocks of this machine.

    `wall`: the wall time of another clock, such as the database's.
    """
    return Moment(utc_now() if wall is None else wall, _boot(), _boot_seconds())


def cluster_seconds(cluster: ClusterTimes, now: Moment) -> float:
    """Return the cluster time at a moment, never before the anchor."""
    if cluster.is_stopped:
        return cluster.anchor_seconds
    by_boot = _seconds_of_this_boot(cluster, now)
    passed = (
        max((now.wall - cluster.anchor_wall).total_seconds(), 0.0) if by_boot is None else by_boot
    )
    return cluster.anchor_seconds + passed * cluster.speed


def stands_still(cluster: ClusterTimes, now: Moment) -> bool:
    """Return whether cluster time waits for a wall clock that was set back.

    It goes on once it is anchored again.
    """
    return (
        not cluster.is_stopped
        and _seconds_of_this_boot(cluster, now) is None
        and now.wall < cluster.anchor_wall
    )


def reanchor(
    cluster: AnchoredTimes, now: Moment, *, speed: float | None = None, paused: bool | None = None
) -> None:
    """Change how fast cluster time passes from now on; past time stays as it was."""
    cluster.anchor_seconds = cluster_seconds(cluster, now)
    cluster.anchor_wall, cluster.anchor_boot, cluster.anchor_boot_seconds = (
        now.wall,
        now.boot,
        now.boot_seconds,
    )
    cluster.speed = cluster.speed if speed is None else speed
    cluster.paused = cluster.paused if paused is None else paused


def wind_to(cluster: AnchoredTimes, now: Moment, seconds: float) -> None:
    """Continue cluster time from `seconds`; nothing changes if that is already past."""
    reanchor(cluster, now)
    cluster.anchor_seconds = max(cluster.anchor_seconds, seconds)


def shown_at(cluster: ClusterTimes, seconds: float) -> str:
    """Return the date that a cluster time is shown as: epoch + seconds."""
    return rfc3339(cluster.epoch + timedelta(seconds=seconds))


def shown_day(cluster: ClusterTimes, seconds: float) -> date:
    """Return the day, in UTC, of the date that a cluster time is shown as."""
    return (cluster.epoch + timedelta(seconds=seconds)).astimezone(UTC).date()


def seconds_at(cluster: ClusterTimes, shown: datetime) -> float:
    """Return the cluster time that is shown as this date."""
    return (shown - cluster.epoch).total_seconds()


def _seconds_of_this_boot(cluster: ClusterTimes, now: Moment) -> float | None:
    """Return seconds since the anchor by the boot clock of the machine that set it.

    Returns None on another machine or after a restart.
    """
    if now.boot is None or now.boot != cluster.anchor_boot or cluster.anchor_boot_seconds is None:
        return None
    passed = now.boot_seconds - cluster.anchor_boot_seconds
    return passed if passed >= 0 else None


@lru_cache(maxsize=1)
def _boot() -> str | None:
    try:
        return _BOOT_ID.read_text().strip() or None
    except OSError:
        return None


def _boot_seconds() -> float:
    """Return seconds since the machine started, including sleep."""
    return (
        time.clock_gettime(time.CLOCK_BOOTTIME)
        if hasattr(time, "CLOCK_BOOTTIME")
        else time.monotonic()
    )
