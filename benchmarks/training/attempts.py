"""Clusters of this machine with commands on them, as rows. Measures nothing."""

from __future__ import annotations

import itertools

import sqlalchemy as sa
from sqlmodel import Session, col

from backend.commands.models import JobCommand
from backend.models import AttemptRow, Cluster, GpuHold, Job, Node, User
from maat.vocabulary import AttemptState

GPUS_PER_NODE, GPU_TYPE = 8, "cpu"


def add_cluster(session: Session, *, gpus: int, round_seconds: float = 60.0) -> Cluster:
    """Add a cluster of slots, under FIFO, whose engine is this machine."""
    cluster = Cluster(
        name="measured",
        policy="fifo",
        placer="whole-node",
        executor="local",
        round_seconds=round_seconds,
        speed=1.0,
    )
    session.add(cluster)
    session.flush()
    session.add_all(
        Node(
            cluster_id=cluster.id,
            name=f"{GPU_TYPE}-{place}",
            gpu_type=GPU_TYPE,
            gpu_count=GPUS_PER_NODE,
            position=place,
        )
        for place in range(-(-gpus // GPUS_PER_NODE))
    )
    session.flush()
    return cluster


def add_commands(
    session: Session, cluster: Cluster, count: int, *, argv: list[str], **fields: object
) -> list[Job]:
    """Add jobs that run this command."""
    owner = session.connection().execute(sa.select(col(User.id), col(User.tenant_id))).one()
    jobs = [
        Job(
            cluster_id=cluster.id,
            name=f"job-{number}",
            owner_id=owner.id,
            tenant_id=owner.tenant_id,
            model="script",
            submitted_seconds=0.0,
            remaining_work=1.0,
            **fields,
        )
        for number in range(count)
    ]
    session.add_all(jobs)
    session.flush()
    session.add_all(
        JobCommand(job_id=job.id, argv=argv, cwd="/", stop_seconds=5.0, max_retries=0)
        for job in jobs
    )
    session.flush()
    return jobs


def add_running_attempts(
    session: Session, cluster: Cluster, jobs: list[Job], *, gpus_each: int
) -> list[str]:
    """Add an attempt of each job whose agent reports, and what it holds; return their ids."""
    nodes = session.connection().execute(
        sa.select(col(Node.id), col(Node.name))
        .where(col(Node.cluster_id) == cluster.id)
        .order_by(col(Node.position))
    )
    free = (
        (node.id, node.name, list(range(first, first + gpus_each)))
        for node in nodes.all()
        for first in range(0, GPUS_PER_NODE, gpus_each)
    )
    attempts = [
        AttemptRow(
            job_id=job.id,
            cluster_id=cluster.id,
            number=1,
            round_number=1,
            state=AttemptState.RUNNING.value,
            reports=True,
            gpu_type=GPU_TYPE,
            gpus_by_node={name: indices},
            gpu_count=gpus_each,
            plan={"total_batch_size": 64, "per_gpu_batch_size": 32, "accumulation_steps": 0},
            plan_number=1,
            launched=True,
            ordered_seconds=0.0,
            queued_seconds=0.0,
            running_seconds=0.0,
        )
        for job, (_, name, indices) in zip(jobs, free, strict=False)
    ]
    session.add_all(attempts)
    session.flush()
    ids = dict(session.connection().execute(sa.select(col(Node.name), col(Node.id))).all())  # type: ignore[arg-type]
    session.add_all(
        GpuHold(node_id=ids[name], gpu_index=index, attempt_id=attempt.id)
        for attempt in attempts
        for name, index in itertools.chain.from_iterable(
            ((name, index) for index in indices) for name, indices in attempt.gpus_by_node.items()
        )
    )
    return [attempt.id for attempt in attempts]
