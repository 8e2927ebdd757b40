"""The service itself: its health, who asks, and the policies and placers that it offers."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class WorkerHealth(TypedDict):
    state: Literal["ok", "stale", "none"]
    last_round_age_seconds: float | None


class Health(TypedDict):
    status: Literal["ok", "degraded"]
    version: str
    database: str
    checked_seconds_ago: float
    worker: WorkerHealth
    time: str


class Me(TypedDict):
    user: str
    tenant: str
    role: str
    permissions: list[str]


class Parameter(TypedDict):
    """One knob of a policy or placer: type, default, range, and where its value comes from."""

    name: str
    type: str
    default: object
    minimum: float | None
    maximum: float | None
    choices: list[str] | None
    unit: str | None
    help: str
    source: str | None


class Described(TypedDict):
    """A policy or placer in the registry."""

    name: str
    title: str
    summary: str
    round_seconds: NotRequired[float | None]
    parameters: list[Parameter]
