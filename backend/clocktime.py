"""Two times: wall time (UTC) and a cluster's own time, in seconds since its epoch. Turns one into the other; keeps neither."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Protocol


class ClusterTimes(Protocol):
    """What a cluster row says about its clock: `anchor_seconds` was the cluster time at `anchor_wall`; `speed` cluster seconds pass per
    wall second while it is not paused."""

    epoch: datetime
    anchor_wall: datetime
    anchor_seconds: float
    speed: float
    paused: bool


def utc_now() -> datetime:
    return datetime.now(UTC)


def cluster_seconds(cluster: ClusterTimes, wall: datetime) -> float:
    """Cluster time at a wall moment. Never before the anchor: a wall clock that is set back stops cluster time, no more."""
    if cluster.paused:
        return cluster.anchor_seconds
    passed = max((wall - cluster.anchor_wall).total_seconds(), 0.0)
    return cluster.anchor_seconds + passed * cluster.speed


def reanchor(cluster: ClusterTimes, wall: datetime, *, speed: float | None = None, paused: bool | None = None) -> None:
    """Change how fast cluster time passes from `wall` on; the time up to now stays as it was."""
    cluster.anchor_seconds = cluster_seconds(cluster, wall)
    cluster.anchor_wall = wall
    cluster.speed = cluster.speed if speed is None else speed
    cluster.paused = cluster.paused if paused is None else paused


def shown_at(cluster: ClusterTimes, seconds: float) -> datetime:
    """The date that a cluster time is shown as: epoch + seconds."""
    return cluster.epoch + timedelta(seconds=seconds)


def seconds_at(cluster: ClusterTimes, shown: datetime) -> float:
    """The cluster time that is shown as this date."""
    return (shown - cluster.epoch).total_seconds()
