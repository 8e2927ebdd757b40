"""The service itself: whether it is well, and who asks."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from maat.api.fields import Timestamp


class WorkerOut(TypedDict):
    """`none`: no round has been made yet, or no cluster is to have any. `stale`: some rounds in a row are missing, or the last one is of the
    future: the clock was set back, and no round has come since."""

    state: Literal["ok", "stale", "none"]
    last_round_age_seconds: float | None


class HealthOut(TypedDict):
    """`database`: `slow` where it has not answered in time; `worker` is then what was known `checked_seconds_ago`, its age grown since."""

    status: Literal["ok", "degraded"]
    version: str
    database: Literal["ok", "slow"]
    checked_seconds_ago: float
    worker: WorkerOut
    time: Timestamp


class MeOut(TypedDict):
    """Who asks, and what they may do."""

    user: str
    tenant: str
    role: str
    permissions: list[str]
