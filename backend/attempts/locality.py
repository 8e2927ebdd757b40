"""How much slower jobs step across nodes: what their owner declared, else what was measured.

Measured are the steps that jobs of a tenant's model made alone on their GPUs, those that have ended
included. No tenant's steps say anything of another's. Commits nothing; the worker calls it too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import groupby
from typing import NamedTuple

import sqlalchemy as sa
from sqlmodel import Session, col, select

from backend.attempts.models import StepSample
from backend.clusters.models import Cluster
from backend.commands.models import JobCommand
from backend.jobs.models import Job
from maat.scheduling.locality import MeasuredPenalty, StepTimes, measured_penalties
from maat.scheduling.placement import weighs_locality
from maat.vocabulary import PenaltyOrigin

NEWEST_JOBS = 200
"""Of a tenant on a cluster: steps of older ones count no more, so that rounds read few rows."""

_OF_STEP_TIMES = (
    "gpu_type",
    "node_count",
    "replica_count",
    "per_gpu_batch_size",
    "accumulation_steps",
    "count",
    "believed_step",
)
"""Columns of StepSample, in the order of StepTimes."""

ByModel = Mapping[str, Mapping[str, MeasuredPenalty]]
"""What was measured by model and GPU type."""


class LocalityPenalty(NamedTuple):
    """The penalty across nodes that rounds take for a job on a GPU type, and whence it is known."""

    gpu_type: str
    penalty: float
    origin: PenaltyOrigin
    configurations: int = 0
    steps: int = 0


def penalties_of(
    gpu_types: Iterable[str],
    declared: float | None,
    measured: Mapping[str, MeasuredPenalty],
) -> list[LocalityPenalty]:
    """Return the penalty on each type: as declared, else as measured there, else 1."""
    return [_penalty(gpu_type, declared, measured.get(gpu_type)) for gpu_type in gpu_types]


def measured_on(
    session: Session, cluster_id: str, tenant_ids: Collection[str]
) -> Mapping[str, ByModel]:
    """Return what was measured of the models of tenants, by tenant."""
    return {
        tenant_id: _of_tenant(session, cluster_id, tenant_id) for tenant_id in sorted(tenant_ids)
    }


def weighed_penalty(session: Session, cluster: Cluster, job: Job) -> LocalityPenalty | None:
    """Return the penalty on the type whose GPUs a job holds, if the cluster's placer weighs it.

    Where jobs are played, nothing is measured of them.
    """
    if job.gpu_type is None or not weighs_locality(cluster.placer):
        return None
    command = session.get(JobCommand, job.id)
    if command is None:
        return LocalityPenalty(job.gpu_type, 1.0, PenaltyOrigin.ASSUMED)
    (found,) = penalties_of([job.gpu_type], command.locality_penalty, measured_of(session, job))
    return found


def measured_of(session: Session, job: Job) -> Mapping[str, MeasuredPenalty]:
    """Return what was measured of the model of a job, on its cluster and in its tenant."""
    found = _of_tenant(session, job.cluster_id, job.tenant_id)
    return found.get(job.model, {})


def _of_tenant(session: Session, cluster_id: str, tenant_id: str) -> ByModel:
    newest = (
        select(Job.id)
        .where(Job.cluster_id == cluster_id, Job.tenant_id == tenant_id)
        .order_by(col(Job.submitted_seconds).desc(), col(Job.id).desc())
        .limit(NEWEST_JOBS)
        .subquery()
    )
    columns = (Job.model, *(getattr(StepSample, name) for name in _OF_STEP_TIMES))
    rows = session.execute(
        sa.select(*(col(column) for column in columns))
        .join(Job, col(Job.id) == col(StepSample.job_id))
        .where(
            col(StepSample.job_id).in_(sa.select(newest.c.id)), col(StepSample.replica_count) > 1
        )
        .order_by(col(Job.model))
    )
    return {
        model: measured_penalties(StepTimes(*row[1:]) for row in of_model)
        for model, of_model in groupby(rows, lambda row: row[0])
    }


def _penalty(
    gpu_type: str, declared: float | None, measured: MeasuredPenalty | None
) -> LocalityPenalty:
    if declared is not None:
        return LocalityPenalty(gpu_type, declared, PenaltyOrigin.DECLARED)
    if measured is None:
        return LocalityPenalty(gpu_type, 1.0, PenaltyOrigin.ASSUMED)
    return LocalityPenalty(
        gpu_type,
        measured.penalty,
        PenaltyOrigin.MEASURED,
        measured.configurations,
        measured.steps,
    )
