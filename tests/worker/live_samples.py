"""A small live cluster in a database: eight T4, eight A100, a fast clock and short jobs."""

from __future__ import annotations

import itertools
from typing import Any

from sqlmodel import col, select

from backend.clocktime import utc_now
from backend.database import Database
from backend.models import (
    Cluster,
    Job,
    JobAllocation,
    JobEvent,
    Node,
    OutboxMessage,
    Round,
    Tenant,
    User,
)
from maat.scheduling.events import may_follow
from maat.vocabulary import JobState
from worker.live import step as live

NODES = (("t4-0", "t4", 4), ("t4-1", "t4", 4), ("a100-0", "a100", 8))
ENDED = {JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED}


def make_owner(database: Database, *, tenant: str = "tenant") -> tuple[str, str]:
    """Ids of a user and its tenant; the same ones when they exist."""
    with database.session_scope() as session:
        user = session.exec(select(User).join(Tenant).where(Tenant.name == tenant)).first()
        if user is None:
            row = Tenant(name=tenant)
            session.add(row)
            session.flush()
            user = User(name=f"owner of {tenant}", tenant_id=row.id, role="cluster_admin")
            session.add(user)
        session.flush()
        return user.id, user.tenant_id


def set_time(database: Database, cluster_id: str, seconds: float) -> None:
    """Set the cluster's clock; at the default speed it then hardly moves."""
    with database.session_scope() as session:
        row = session.get_one(Cluster, cluster_id)
        row.anchor_seconds, row.anchor_wall = seconds, utc_now()
        session.add(row)


def step_at(database: Database, cluster_id: str, *times: float) -> None:
    """Make a round at each of these cluster times."""
    for seconds in times:
        set_time(database, cluster_id, seconds)
        assert live.step_cluster(database, cluster_id) is not None


def make_cluster(
    database: Database,
    *,
    speed: float = 1e-9,
    round_seconds: float = 60.0,
    name: str = "demo",
    **fields: Any,
) -> str:
    with database.session_scope() as session:
        settings = {"policy": "sia", "placer": "whole-node", **fields}
        cluster = Cluster(name=name, round_seconds=round_seconds, speed=speed, **settings)
        session.add(cluster)
        session.flush()
        session.add_all(
            Node(cluster_id=cluster.id, name=node, gpu_type=kind, gpu_count=count, position=i)
            for i, (node, kind, count) in enumerate(NODES)
        )
    return cluster.id


def submit(
    database: Database,
    cluster_id: str,
    *,
    count: int = 1,
    model: str = "cifar10",
    work_scale: float = 0.3,
    **fields: Any,
) -> list[str]:
    """Submit jobs at cluster second 0."""
    owner, tenant = make_owner(database)
    settings = {"adaptivity": "adaptive", "submitted_seconds": 0.0, "remaining_work": 1.0, **fields}
    with database.session_scope() as session:
        rows = [
            Job(
                cluster_id=cluster_id,
                name=f"job-{i}",
                owner_id=owner,
                tenant_id=tenant,
                model=model,
                work_scale=work_scale,
                **settings,
            )
            for i in range(count)
        ]
        session.add_all(rows)
    return [row.id for row in rows]


def round_numbers(database: Database, cluster_id: str) -> list[int]:
    with database.session_scope(writes=False) as session:
        return list(
            session.exec(
                select(Round.number)
                .where(Round.cluster_id == cluster_id)
                .order_by(col(Round.number))
            )
        )


def jobs_of(database: Database, cluster_id: str) -> list[Job]:
    with database.session_scope(writes=False) as session:
        return list(
            session.exec(select(Job).where(Job.cluster_id == cluster_id).order_by(col(Job.id)))
        )


def job(database: Database, job_id: str) -> Job:
    with database.session_scope(writes=False) as session:
        return session.get_one(Job, job_id)


def states_of(database: Database, job_id: str) -> list[JobState]:
    """The states through which a job passed, as its events tell."""
    statement = (
        select(JobEvent.state)
        .where(JobEvent.job_id == job_id, col(JobEvent.state).is_not(None))
        .order_by(col(JobEvent.id))
    )
    with database.session_scope(writes=False) as session:
        return [JobState(state) for state in session.exec(statement)]


def spans_of(database: Database, job_id: str) -> list[JobAllocation]:
    with database.session_scope(writes=False) as session:
        return list(
            session.exec(
                select(JobAllocation)
                .where(JobAllocation.job_id == job_id)
                .order_by(col(JobAllocation.id))
            )
        )


def waiting_messages(database: Database, cluster_id: str) -> list[int]:
    statement = select(OutboxMessage.round_number).where(
        OutboxMessage.cluster_id == cluster_id, col(OutboxMessage.applied_at).is_(None)
    )
    with database.session_scope(writes=False) as session:
        return list(session.exec(statement))


def assert_history_is_whole(database: Database, cluster_id: str) -> None:
    """Assert that a cluster's history has no gaps or contradictions.

    Rounds are consecutive, and every job's states follow each other legally. A job's stretches do
    not overlap, and are closed once it has ended. No two jobs held a GPU at once.
    """
    numbers = round_numbers(database, cluster_id)
    assert numbers == list(range(1, len(numbers) + 1))
    held: dict[int, list[tuple[float, float]]] = {}
    for row in jobs_of(database, cluster_id):
        states = [JobState.SUBMITTED, *states_of(database, row.id)]
        assert all(may_follow(before, after) for before, after in itertools.pairwise(states)), (
            states
        )
        assert states[-1] == row.state
        spans = spans_of(database, row.id)
        assert sum(span.to_seconds is None for span in spans) == (row.gpus is not None)
        if row.state in ENDED:
            assert row.finished_seconds is not None
            assert row.gpus is None
        for span in spans:
            for gpu in span.gpus:
                held.setdefault(gpu, []).append(
                    (
                        span.from_seconds,
                        span.to_seconds if span.to_seconds is not None else float("inf"),
                    )
                )
    for stretches in held.values():
        ordered = sorted(stretches)
        assert all(before[1] <= after[0] + 1e-6 for before, after in itertools.pairwise(ordered)), (
            ordered
        )
