"""What the tables of a cluster's attempts say at one moment."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlmodel import Session, SQLModel, col, select

from backend.attempts.comparisons import MeasuredScore, measured_scores
from backend.attempts.gradients import latest_gradients
from backend.attempts.locality import ByModel, measured_on
from backend.attempts.shared_models import shared_models
from backend.models import (
    AttemptRow,
    Cluster,
    GradientSample,
    Job,
    JobCommand,
    JobFit,
    JobFlag,
    JobMemory,
    Node,
    StepSample,
)
from maat.scheduling.evidence import SharedModels
from maat.scheduling.job import JobId
from maat.vocabulary import AttemptKind, AttemptState, Doubted, Outcome

Row = TypeVar("Row", bound=SQLModel)


@dataclass(frozen=True)
class TrainingTables:
    """The rows of the unfinished jobs of one cluster, by job.

    `attempts`: ascending by number. `gradients`: the latest, the
    newest first. `fits`: by GPU type. `faults`: by the
    name of a node that cannot be used, why. `scores`: of the cluster's GPUs by attempt.
    `paused`: nothing new is begun. `memory`: by GPU type, the samples of one pass that were too
    many. `penalties`: what steps across nodes were measured to cost, by model.
    `flags`: what is unlikely of what they reported, dismissed or not, by kind. `engine_fault`: why
    the engine does not answer. `shared`: the models of which all tenants' evidence counts together.
    """

    commands: Mapping[JobId, JobCommand]
    attempts: Mapping[JobId, Sequence[AttemptRow]]
    samples: Mapping[JobId, Sequence[StepSample]]
    gradients: Mapping[JobId, Sequence[GradientSample]]
    fits: Mapping[JobId, Mapping[str, JobFit]]
    faults: Mapping[str, str]
    scores: Sequence[MeasuredScore]
    paused: bool
    memory: Mapping[JobId, Mapping[str, int]]
    penalties: ByModel
    flags: Mapping[JobId, Mapping[Doubted, JobFlag]]
    engine_fault: str | None
    shared: SharedModels = SharedModels()


def read_tables(session: Session, cluster: Cluster) -> TrainingTables:
    unfinished_jobs = sa.and_(
        col(Job.cluster_id) == cluster.id, col(Job.finished_seconds).is_(None)
    )
    unfinished = select(Job.id).where(unfinished_jobs).scalar_subquery()

    def of_jobs(table: type[Row], *order: Any) -> Mapping[JobId, Sequence[Row]]:
        job_id = table.job_id  # type: ignore[attr-defined]
        found = session.exec(select(table).where(job_id.in_(unfinished)).order_by(job_id, *order))
        return {key: list(rows) for key, rows in groupby(found, lambda row: row.job_id)}  # type: ignore[attr-defined]

    faulty = session.exec(
        select(Node).where(Node.cluster_id == cluster.id, col(Node.fault).is_not(None))
    )
    return TrainingTables(
        {key: rows[0] for key, rows in of_jobs(JobCommand).items()},
        of_jobs(AttemptRow, col(AttemptRow.number)),
        of_jobs(StepSample, col(StepSample.id)),
        latest_gradients(session, unfinished_jobs),
        {key: {row.gpu_type: row for row in rows} for key, rows in of_jobs(JobFit).items()},
        {node.name: node.fault or "" for node in faulty},
        measured_scores(session, cluster),
        cluster.paused,
        {
            key: {row.gpu_type: row.out_of_memory_at for row in rows}
            for key, rows in of_jobs(JobMemory).items()
        },
        measured_on(session, cluster, _tenants_of(session, unfinished)),
        {key: {Doubted(row.kind): row for row in rows} for key, rows in of_jobs(JobFlag).items()},
        cluster.fault,
        shared_models(session, cluster),
    )


def _tenants_of(session: Session, job_ids: Any) -> Collection[str]:
    return session.exec(select(Job.tenant_id).where(col(Job.id).in_(job_ids)).distinct()).all()


def live_attempt(attempts: Sequence[AttemptRow]) -> AttemptRow | None:
    """Return the newest attempt if it has not ended."""
    newest = attempts[-1] if attempts else None
    return newest if newest is not None and not_over(newest) else None


def not_over(attempt: AttemptRow) -> bool:
    return attempt.state != AttemptState.ENDED


def did_all_work(attempt: AttemptRow) -> bool:
    """Return whether the job has succeeded with this attempt: a profile trains only by mistake."""
    is_training = attempt.kind == AttemptKind.TRAIN or attempt.finished
    return is_training and attempt.outcome == Outcome.SUCCEEDED


def trained(attempts: Sequence[AttemptRow]) -> Sequence[AttemptRow]:
    """Return the attempts that are no profiles."""
    return [one for one in attempts if one.kind == AttemptKind.TRAIN]
