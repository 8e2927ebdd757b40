"""What a notice says of the next round: that it considers a job, or why none is coming."""

from __future__ import annotations

import asyncio

from frontend.formatting import duration
from frontend.loading import loaded
from maat.client import AsyncClient, calls


async def _is_paused(maat: AsyncClient, cluster_id: str | None) -> bool:
    """Return whether the cluster is; no, as long as nobody says which it is."""
    if cluster_id is None:
        return False
    cluster = (await loaded(maat.send(calls.cluster(cluster_id)))).answer
    return cluster is not None and cluster["paused"]


async def next_round(maat: AsyncClient, cluster_id: str | None, whom: str) -> str:
    """Say that the next round considers `whom`: "it", "them"; or what has to happen before."""
    health, paused = await asyncio.gather(loaded(maat.health()), _is_paused(maat, cluster_id))
    if paused:
        return f"The cluster is paused: once it is resumed, a round considers {whom}."
    worker = health.answer and health.answer["worker"]
    if worker and worker["state"] == "stale":
        age = worker["last_round_age_seconds"]
        since = "No round is made" if age is None else f"The last round was {duration(age)} ago"
        return f"{since}: one considers {whom} as soon as the worker runs again."
    return f"The next round considers {whom}."
