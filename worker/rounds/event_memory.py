"""The events of the last steps of a cluster, so that none is written twice or too late.

What is remembered is the same whether a worker goes on from memory or from rows: every event from a
time on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import sqlalchemy as sa
from sqlmodel import Session, col

from backend.models import JobEvent
from maat.scheduling.events import TERMINAL, Event, EventKind
from maat.scheduling.job import JobId

REMEMBERED_SECONDS = 300.0
"""An event may come this much later than the observation before, in cluster time, and count."""

_STATE, _ALLOCATED = EventKind.STATE.value, EventKind.ALLOCATED.value


class Told(NamedTuple):
    """What identifies an event."""

    job_id: JobId
    time: float
    kind: str
    state: str | None


def told_since(session: Session, cluster_id: str, time: float) -> list[Told]:
    """Read the events of a cluster from this cluster time on, in the order of their writing."""
    columns = (
        col(JobEvent.job_id),
        col(JobEvent.cluster_seconds),
        col(JobEvent.kind),
        col(JobEvent.state),
    )
    statement = (
        sa.select(*columns)
        .where(col(JobEvent.cluster_id) == cluster_id, col(JobEvent.cluster_seconds) >= time)
        .order_by(col(JobEvent.id))
    )
    found = session.connection().execute(statement)
    return [Told(job_id, at, kind, state) for job_id, at, kind, state in found]


class EventMemory:
    """Tells old news from news."""

    def __init__(self, told: Iterable[Told]) -> None:
        self._recorded = set(told)
        self._since = -math.inf
        self._entered: dict[JobId, float] = {}
        for one in told:
            if one.kind == _STATE:
                self._entered[one.job_id] = one.time

    def forget_before(self, time: float) -> None:
        if time > self._since:
            self._since = time
            self._recorded = {told for told in self._recorded if told.time >= time}
            self._entered = {job: at for job, at in self._entered.items() if at >= time}

    def remember(self, event: Event) -> None:
        self._recorded.add(_identity(event, event.time))
        if event.state is not None:
            self._entered[event.job_id] = event.time

    def has(self, event: Event) -> bool:
        return _identity(event, event.time) in self._recorded

    def is_old_news(self, event: Event, time: float, *, is_new: bool) -> bool:
        """Return whether an event at `time` was told before or comes too late to count.

        Too late: it is from before all that is remembered, or it would take the job back to a state
        that it has left. Neither holds for the first events of a job (`is_new`).
        """
        told = _identity(event, time)
        again = Told(event.job_id, time, _ALLOCATED, None)  # as a repeated state is written
        if told in self._recorded or again in self._recorded:
            return True
        if is_new:
            return False
        left = event.state not in TERMINAL and time < self._entered.get(event.job_id, -math.inf)
        return time < self._since or (event.state is not None and left)


def _identity(event: Event, time: float) -> Told:
    return Told(
        event.job_id, time, event.kind.value, None if event.state is None else event.state.value
    )
