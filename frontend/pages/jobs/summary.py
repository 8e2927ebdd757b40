"""The job list in a sentence: how many of its jobs wait, for how long, and how many run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from frontend.formatting import count, duration, plural
from frontend.loading import loaded
from frontend.pages.overview.summary import WAITING
from maat.api.job_answers import JobPage
from maat.client import AsyncClient
from maat.client.calls import JobFilters

FOR_A_FIRST_GPU = ("pending", "submitted", "profiling")
RUNNING = ("running", "starting", "restarting")


async def oldest_wait(maat: AsyncClient, query: JobFilters, page: JobPage) -> float | None:
    """Return the wait of the job that was submitted first of those without a GPU so far.

    None: there is none, or it could not be asked for. `page`: an answer to `query`.
    """
    states = [state for state in FOR_A_FIRST_GPU if page["state_counts"].get(state)]
    if not states:
        return None
    first = {**query, "state": states, "sort": "submitted_at", "count": None, "limit": 1}
    found = await loaded(maat.jobs(**cast(JobFilters, first)))
    items = found.answer["items"] if found.answer else []
    return items[0]["wait_seconds"] if items else None


def verdict(counts: Mapping[str, int], oldest: float | None) -> str:
    """Sum up the jobs of a list. `oldest`: the seconds that its oldest job has waited."""
    total, waiting, running = (
        sum(counts.values()),
        *(sum(counts.get(state, 0) for state in states) for states in (WAITING, RUNNING)),
    )
    if not total:
        return ""
    run = f"{count(running)} {'runs' if running == 1 else 'run'}"
    if not waiting:
        return f"None of {plural(total, 'job')} waits for GPUs; {run}."
    since = "" if oldest is None else f", the oldest for {duration(oldest)}"
    verb = "waits" if waiting == 1 else "wait"
    return f"{count(waiting)} of {plural(total, 'job')} {verb} for GPUs{since}; {run}."
