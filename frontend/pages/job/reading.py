"""What a job's page shows, all of one moment of the job."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from frontend.loading import Loaded, loaded
from maat.api.fields import Page
from maat.api.job_answers import AllocationSpanOut, ExplanationOut, JobEventOut, JobOut
from maat.client import AsyncClient, calls

MOST_TRIES = 3


@dataclass(frozen=True)
class JobParts:
    """The answers that a page is drawn from."""

    job: Loaded[JobOut]
    spans: Loaded[Page[AllocationSpanOut]]
    events: Loaded[Page[JobEventOut]]
    explanation: Loaded[ExplanationOut]


async def read_parts(maat: AsyncClient, job_id: str) -> JobParts:
    """Read a job with its timeline, events and explanation.

    Each is an answer of its own, and a round may be committed between two of them: a page would say
    that the job holds no GPU, and that it is starting on one. A round raises the job's version in
    the transaction that writes the rest. So all is of one moment if the version is the same before
    and after; else it is read again, at most MOST_TRIES times, so that a page always comes.
    """
    job = await loaded(maat.job(job_id))
    for _ in range(MOST_TRIES):
        spans, events, explanation = await asyncio.gather(
            loaded(maat.send(calls.allocations(job_id))),
            loaded(maat.send(calls.events(job_id))),
            loaded(maat.send(calls.explanation(job_id))),
        )
        before, job = job, await loaded(maat.job(job_id))
        if _version(before) == _version(job):
            break
    return JobParts(job, spans, events, explanation)


def _version(job: Loaded[JobOut]) -> int | None:
    return None if job.answer is None else job.answer["version"]
