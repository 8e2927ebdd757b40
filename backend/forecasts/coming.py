"""Why a job has no forecast yet: what is under way, and since when."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import NamedTuple

from backend.clusters.models import Cluster
from backend.forecasts.models import ClusterForecast, rested_at, rested_for_new_jobs_at
from backend.jobs.dependencies import hold_of
from backend.jobs.models import Job
from backend.operations.models import OperationState

_CANNOT = (
    "Not forecast: how much work it has is not known, or it follows a job of which that is so."
)


class Coming(NamedTuple):
    """What a job's forecast waits for. `since`: wall time, None if nothing is under way."""

    state: str
    sentence: str
    since: datetime | None = None


def what_is_coming(
    job: Job, cluster: Cluster, row: ClusterForecast | None, now: datetime
) -> Coming:
    """Return why there is none. `row`: of the cluster's forecasts, None before the first."""
    if cluster.paused:
        words = (
            "Not forecast: the rounds of its cluster are paused. Resume them on the page Admin: a "
            "forecast follows the first round."
        )
        return Coming("coming", words)
    if row is None or row.started_at is None:
        words = (
            "No forecast yet: they are made while somebody reads them, and nobody had read one of "
            f"its cluster. The first begins after the next round{_every(cluster)}."
        )
        return Coming("coming", words)
    if row.state == OperationState.RUNNING:
        return Coming("coming", _under_way(job, row, row.started_at, now), row.started_at)
    if row.detail is not None:
        words = f"Not forecast: the last one failed. {row.detail}"
        return Coming("coming", f"{words} {_next(row, now)}")
    if row.made_seconds is not None and row.made_seconds > job.submitted_seconds:
        return Coming("not-known", _CANNOT)
    if row.started_at > job.created_at:
        return Coming("coming", f"No forecast yet. {_next(row, now)}")
    soon = rested_for_new_jobs_at(row)
    words = _at(soon, now, otherwise="Its first forecast is made within seconds.")
    return Coming("coming", f"No forecast yet: the job came after the last one. {words}")


def held_by(forerunner: Job) -> Coming:
    """Return why there is none for a job that follows this one, which waits for a person."""
    why, action = hold_of(forerunner)
    words = f"Not forecast: it follows job {forerunner.name}, which {why}."
    return Coming("not-known", f"{words} {action.capitalize()} that one first.")


def _next(row: ClusterForecast, now: datetime) -> str:
    return _at(rested_at(row), now, otherwise="The next one begins after the next round.")


def _at(due: datetime | None, now: datetime, *, otherwise: str) -> str:
    if due is None or due <= now:
        return otherwise
    seconds = max(round((due - now) / timedelta(seconds=1)), 1)
    return f"The next one begins in about {seconds} s, at {_clock(due)}."


def _under_way(job: Job, row: ClusterForecast, began: datetime, now: datetime) -> str:
    """Say since when one is made, whether it has the job, and when it can be ready."""
    failed = "" if row.detail is None else f"The last forecast failed. {row.detail} "
    since = f"since {_clock(began)}"
    if began < job.created_at:
        return (
            f"{failed}No forecast yet: one has been under way {since}, and the job came after its "
            f"begin. The next one has the job.{_usually(row)}"
        )
    words = f"{failed}No forecast yet: one with this job has been under way {since}."
    ready = began + timedelta(seconds=row.compute_seconds)
    if ready <= now:
        return f"{words}{_usually(row)}"
    return f"{words} It is ready at {_clock(ready)} at the earliest.{_usually(row)}"


def _usually(row: ClusterForecast) -> str:
    return f" The last took {row.compute_seconds:.0f} s of CPU." if row.compute_seconds else ""


def _every(cluster: Cluster) -> str:
    """`, within 60 s`: of wall time, as rounds come that often. "" if its clock stands still."""
    seconds = cluster.round_seconds / cluster.speed
    return f", within {max(math.ceil(seconds), 1)} s" if seconds < 86_400 else ""


def _clock(moment: datetime) -> str:
    return f"{moment:%H:%M:%S} UTC"
