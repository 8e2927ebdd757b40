"""How much slower jobs step across nodes: what their owner declared, else what was measured.

Measured are the steps that jobs of a model made alone on their GPUs, ended ones too: jobs of the
tenant, or of all tenants if they share the model. They pass through maat.scheduling.evidence, as
those do that models are fitted to. Commits nothing; the worker calls it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlmodel import Session, col, select

from backend.attempts.models import StepSample
from backend.attempts.shared_models import shared_models
from backend.clocktime import cluster_seconds
from backend.clusters.models import Cluster
from backend.commands.models import JobCommand
from backend.jobs.models import Job
from backend.moments import moment_of
from maat.scheduling.evidence import (
    FORGOTTEN_SECONDS,
    ModelKey,
    SharedModels,
    alone_seconds,
    bounded_samples,
)
from maat.scheduling.fitting import Sample
from maat.scheduling.locality import MeasuredPenalty, StepTimes, pooled_penalties
from maat.scheduling.placement import weighs_locality
from maat.vocabulary import PenaltyOrigin

NEWEST_JOBS = 200
"""Of a tenant on a cluster: steps of older ones count no more, so that rounds read few rows."""

ByModel = Mapping[ModelKey, Mapping[str, MeasuredPenalty]]
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


def measured_on(session: Session, cluster: Cluster, tenant_ids: Collection[str]) -> ByModel:
    """Return what was measured of the models of tenants."""
    shared = shared_models(session, cluster)
    tenants = {*tenant_ids, *_sharing(session, cluster.id, shared)}
    now = cluster_seconds(cluster, moment_of(session))
    by_model: dict[ModelKey, list[_Steps]] = defaultdict(list)
    for tenant in sorted(tenants):
        for model, row in _steps_of(session, cluster.id, tenant, now):
            by_model[shared.key(tenant, model)].append((tenant, row))
    return {
        model: pooled_penalties(_bounded_times(of_model, now))
        for model, of_model in by_model.items()
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
    """Return what was measured of the model of a job, on its cluster."""
    cluster = session.get_one(Cluster, job.cluster_id)
    key = shared_models(session, cluster).key(job.tenant_id, job.model)
    return measured_on(session, cluster, [job.tenant_id]).get(key, {})


_COLUMNS = (
    StepSample.job_id,
    StepSample.gpu_type,
    StepSample.node_count,
    StepSample.replica_count,
    StepSample.per_gpu_batch_size,
    StepSample.accumulation_steps,
    StepSample.count,
    StepSample.believed_step,
    StepSample.believed_sync,
    StepSample.believed_weight,
    StepSample.last_seconds,
)
_Steps = tuple[str, Any]
"""The tenant of a job, and steps of it: a row of _COLUMNS."""


def _sharing(session: Session, cluster_id: str, shared: SharedModels) -> Collection[str]:
    """Return the tenants that have jobs of shared models."""
    if not shared.names:
        return ()
    of_models = (Job.cluster_id == cluster_id, col(Job.model).in_(shared.names))
    return session.exec(select(Job.tenant_id).where(*of_models).distinct()).all()


def _steps_of(
    session: Session, cluster_id: str, tenant_id: str, now: float
) -> Sequence[tuple[str, Any]]:
    """Return (model, row of _COLUMNS) of a tenant's newest jobs, without what is forgotten."""
    newest = (
        select(Job.id)
        .where(Job.cluster_id == cluster_id, Job.tenant_id == tenant_id)
        .order_by(col(Job.submitted_seconds).desc(), col(Job.id).desc())
        .limit(NEWEST_JOBS)
        .subquery()
    )
    rows = session.execute(
        sa.select(col(Job.model), *(col(column) for column in _COLUMNS))
        .join(Job, col(Job.id) == col(StepSample.job_id))
        .where(
            col(StepSample.job_id).in_(sa.select(newest.c.id)),
            col(StepSample.last_seconds) >= now - FORGOTTEN_SECONDS,
        )
        .order_by(col(Job.model), col(StepSample.job_id), col(StepSample.id))
    )
    return [(row.model, row) for row in rows]


def _bounded_times(steps: Sequence[_Steps], now: float) -> Mapping[str, Sequence[StepTimes]]:
    """Return the times of a model's steps by tenant, none much faster than is usual of its kind.

    Steps across nodes are another kind than steps within one.
    """
    of_kind: dict[tuple[str, bool], list[_Steps]] = defaultdict(list)
    for tenant, row in steps:
        of_kind[row.gpu_type, row.node_count > 1].append((tenant, row))
    times: dict[str, list[StepTimes]] = defaultdict(list)
    for found in of_kind.values():
        of_job: dict[tuple[str, str], list[Sample]] = defaultdict(list)
        for tenant, row in found:
            of_job[tenant, row.job_id].append(_one_pass(row))
        kind = [(tenant, samples) for (tenant, _), samples in of_job.items()]
        bounded = bounded_samples([_one_pass(row) for _, row in found], kind)
        for (tenant, row), sample in zip(found, bounded, strict=True):
            times[tenant].append(_times(row, sample, now - row.last_seconds))
    return times


def _one_pass(row: Any) -> Sample:
    """Return the sample of a step as if it had one pass."""
    alone = max(row.believed_step - row.believed_sync, 0.0) / (row.accumulation_steps + 1)
    key = row.node_count, row.replica_count, row.per_gpu_batch_size
    return Sample(*key, alone + row.believed_sync, row.believed_sync, row.believed_weight)


def _times(row: Any, sample: Sample, age_seconds: float) -> StepTimes:
    passes = row.accumulation_steps + 1
    return StepTimes(
        row.gpu_type,
        row.node_count,
        row.replica_count,
        row.per_gpu_batch_size,
        row.accumulation_steps,
        row.count,
        alone_seconds(sample) * passes + sample.sync_seconds,
        age_seconds,
    )


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
