"""Lengths of jobs that a scheduler misjudges, each by a factor of its own."""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace
from typing import Any

import numpy as np

from maat.scheduling.job import Job, JobId
from maat.scheduling.parameters import knob
from maat.scheduling.rounds import RoundInput

MOST_ERROR = 5.0


def length_error_knob() -> Any:
    """Return the knob that the shortest-first policies share."""
    return knob(
        0.0,
        "How far lengths are misjudged: that of each job by a factor e^x, for its whole life, "
        "with x from a normal distribution of this deviation.",
        source="SJF-BSBF does not say how its SJF knew lengths; 0 is all of them",
        minimum=0.0,
        maximum=MOST_ERROR,
    )


def misjudged(round_input: RoundInput, length_error: float) -> RoundInput:
    """Return the round as a scheduler sees it that misjudges what is left of every job."""
    if not length_error:
        return round_input
    jobs = tuple(_misjudged(job, length_error) for job in round_input.jobs)
    return replace(round_input, jobs=jobs)


def _misjudged(job: Job, length_error: float) -> Job:
    factor = factor_of(job.id, length_error)
    steps = job.remaining_steps
    return replace(
        job,
        remaining_work=job.remaining_work * factor,
        remaining_steps=None if steps is None else steps * factor,
    )


def factor_of(job_id: JobId, length_error: float) -> float:
    """Return the factor of a job: drawn from its id, so that every round has the same."""
    digest = hashlib.blake2b(job_id.encode(), digest_size=8).digest()
    drawn = np.random.default_rng(int.from_bytes(digest)).standard_normal()
    return math.exp(length_error * float(drawn))
