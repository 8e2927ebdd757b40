"""Jobs and rounds for the tests of Gavel."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scheduling.examples import belief, job, spec

from maat.scheduling.cluster import Cluster
from maat.scheduling.job import Allocation, Job
from maat.scheduling.policies.requests import requests
from maat.scheduling.policies.shares.gavel import Gavel, Objective
from maat.scheduling.policies.shares.programmes import ShareProblem
from maat.scheduling.policies.shares.time_shares import candidates_of
from maat.scheduling.rounds import Decision, RoundInput
from maat.scheduling.solving.linear_programme import LinearMethod

ROUND = 360.0


def asks(
    name: str,
    gpus: int = 1,
    *,
    held: Sequence[int] = (),
    work: float = 1e6,
    age: float = 1000.0,
    **alphas: float,
) -> Job:
    """A job of that many GPUs at a batch of 32 a GPU.

    For each known type: seconds of a pass at batch zero.
    """
    declared = spec(
        name, gpu_count=gpus, batch_size=32 * gpus, submitted_at=100_000.0 - age, model=name
    )
    return replace(job(declared, belief(**(alphas or {"t4": 0.5})), held=held), remaining_work=work)


def gavel(**changes: Any) -> Gavel:
    return Gavel(**{"objective": Objective.MAX_MIN, **changes})


def play(policy: Gavel, first: RoundInput, rounds: int) -> list[Decision]:
    """Rounds in order: jobs hold what they were granted and make no progress."""
    decisions, now = [], first
    for number in range(rounds):
        decision = policy.allocate(now)
        decisions.append(decision)
        state = replace(decision.state, data=json.loads(json.dumps(decision.state.data)))
        jobs = tuple(
            replace(j, allocation=_allocation_by(decision, j.id, first.cluster)) for j in first.jobs
        )
        now = replace(
            first,
            jobs=jobs,
            state=state,
            now=first.now + ROUND * (number + 1),
            round_number=number + 2,
        )
    return decisions


def _allocation_by(decision: Decision, job_id: str, cluster: Cluster) -> Allocation | None:
    grant = decision.grants.get(job_id)
    if grant is None:
        return None
    kind = cluster.type_index[grant.gpu_type]
    gpus = np.flatnonzero(cluster.gpu_type_of == kind)[: grant.gpu_count]
    return Allocation(grant.gpu_type, tuple(gpus.tolist()))


def runs(decisions: Sequence[Decision]) -> Counter[tuple[str, str]]:
    """Rounds by job and type."""
    return Counter(
        (job_id, grant.gpu_type) for d in decisions for job_id, grant in d.grants.items()
    )


def problem_of(
    round_input: RoundInput, rate: np.ndarray, method: LinearMethod = LinearMethod.INTERIOR_POINT
) -> ShareProblem:
    return ShareProblem(
        round_input, candidates_of(round_input, requests(round_input), rate), method
    )
