"""The service itself: its health, and who asks."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from maat.api.fields import Timestamp


class WorkerOut(TypedDict):
    """The health of the worker.

    `none`: no round has been made yet, or no cluster needs any. `stale`: several rounds are
    missing, or the last one is in the future: the clock was set back, and no round followed.
    """

    state: Literal["ok", "stale", "none"]
    last_round_age_seconds: float | None


class HealthOut(TypedDict):
    """The health of the service.

    `database`: `slow` if it has not answered in time; `worker` is then the state known
    `checked_seconds_ago`, with its age updated.
    """

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
