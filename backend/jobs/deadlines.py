"""How a job stands to its deadline, which is a wish: no round reads it. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from backend.clocktime import ClusterTimes, Moment, cluster_seconds, seconds_at, shown_at
from backend.jobs.models import Job
from backend.problems import FieldError
from maat.api.fields import rfc3339
from maat.vocabulary import JobState


class Outlook(NamedTuple):
    """What is forecast: `on-time`, `late`, `unknown`; or what happened: `met`, `missed`.

    `seconds_late`: by how much it is, or will be, missed. Both are None without a deadline.
    """

    word: str | None = None
    seconds_late: float | None = None


def outlook_of(job: Job, *, now: float, remaining_seconds: float | None) -> Outlook:
    """Return the outlook at a cluster time. `remaining_seconds`: at the present goodput."""
    wished = job.deadline_seconds
    if wished is None:
        return Outlook()
    if job.finished_seconds is not None:
        if job.state != JobState.SUCCEEDED:
            return Outlook()
        late = job.finished_seconds - wished
        return Outlook("missed", late) if late > 0 else Outlook("met")
    if now > wished:
        return Outlook("missed", now - wished + (remaining_seconds or 0.0))
    if remaining_seconds is None:
        return Outlook("unknown")
    late = now + remaining_seconds - wished
    return Outlook("late", late) if late > 0 else Outlook("on-time")


def objection_to(wished: datetime, cluster: ClusterTimes, now: Moment) -> FieldError | None:
    """Return what is wrong with a deadline that is being set: it is missed already."""
    present = cluster_seconds(cluster, now)
    if seconds_at(cluster, wished) > present:
        return None
    return FieldError(
        "/deadline",
        "past",
        "The deadline has passed already.",
        f"The cluster's time is {shown_at(cluster, present)}: give a later one, or none.",
        rfc3339(wished),
    )
