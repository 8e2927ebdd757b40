"""What the tables of a cluster's attempts say at one moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeVar

from sqlmodel import Session, SQLModel, col, func, select

from backend.models import (
    AttemptRow,
    Cluster,
    GradientSample,
    Job,
    JobCommand,
    Node,
    StepSample,
)
from maat.scheduling.job import JobId
from maat.vocabulary import AttemptState

Row = TypeVar("Row", bound=SQLModel)


@dataclass(frozen=True)
class TrainingTables:
    """The rows of the unfinished jobs of one cluster, by job.

    `attempts`: ascending by number. `gradients`: the newest. `faults`: by the name of a node that
    cannot be used, why.
    """

    commands: Mapping[JobId, JobCommand]
    attempts: Mapping[JobId, Sequence[AttemptRow]]
    samples: Mapping[JobId, Sequence[StepSample]]
    gradients: Mapping[JobId, GradientSample]
    faults: Mapping[str, str]


def read_tables(session: Session, cluster: Cluster) -> TrainingTables:
    unfinished = (
        select(Job.id)
        .where(Job.cluster_id == cluster.id, col(Job.finished_seconds).is_(None))
        .scalar_subquery()
    )

    def of_jobs(table: type[Row], *order: Any) -> Mapping[JobId, Sequence[Row]]:
        job_id = table.job_id  # type: ignore[attr-defined]
        found = session.exec(select(table).where(job_id.in_(unfinished)).order_by(job_id, *order))
        return {key: list(rows) for key, rows in groupby(found, lambda row: row.job_id)}  # type: ignore[attr-defined]

    newest = (
        select(func.max(GradientSample.id))
        .where(col(GradientSample.job_id).in_(unfinished))
        .group_by(col(GradientSample.job_id))
    )
    gradients = session.exec(
        select(GradientSample).where(col(GradientSample.id).in_(newest.scalar_subquery()))
    )
    faulty = session.exec(
        select(Node).where(Node.cluster_id == cluster.id, col(Node.fault).is_not(None))
    )
    return TrainingTables(
        {key: rows[0] for key, rows in of_jobs(JobCommand).items()},
        of_jobs(AttemptRow, col(AttemptRow.number)),
        of_jobs(StepSample, col(StepSample.id)),
        {row.job_id: row for row in gradients},
        {node.name: node.fault or "" for node in faulty},
    )


def live_attempt(attempts: Sequence[AttemptRow]) -> AttemptRow | None:
    """Return the newest attempt if it has not ended."""
    newest = attempts[-1] if attempts else None
    return None if newest is None or newest.state == AttemptState.ENDED else newest
