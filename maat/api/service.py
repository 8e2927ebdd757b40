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
    `checked_seconds_ago`, with its age updated. `damaged` if what it stores cannot be right:
    /readyz says what to do. `disk`: `full` if the data folder takes no more.
    """

    status: Literal["ok", "degraded"]
    version: str
    database: Literal["ok", "slow", "damaged"]
    disk: Literal["ok", "full"]
    checked_seconds_ago: float
    worker: WorkerOut
    time: Timestamp


class AliveOut(TypedDict):
    """The process answers. It says nothing of the database, the broker or the workers."""

    status: Literal["alive"]
    version: str


class ReadyOut(TypedDict):
    """All that Maat needs is there. `checked`: what was tried."""

    status: Literal["ready"]
    version: str
    checked: list[str]


class MeOut(TypedDict):
    """Who asks, and what they may do.

    `by`: how Maat knows: by a token, by the session of a browser, or because the user who runs Maat
    asks on the same machine. `has_password`: whether they can sign in by password. `may_give`: the
    roles that they may give to others.
    """

    user: str
    tenant: str
    role: str
    permissions: list[str]
    by: Literal["token", "session", "local"]
    has_password: bool
    may_give: list[str]
