"""What was believed of a job that has ended, read from the tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import sqlalchemy as sa
from sqlmodel import Session, col, select

from backend.attempts.restarts import restart_parts, restart_seconds
from backend.commands.spec import command_spec
from backend.jobs.declarations import declaration_of
from backend.models import (
    AttemptRow,
    EndedBelief,
    GradientSample,
    Job,
    JobCommand,
    JobFit,
    JobMemory,
    StepSample,
)
from backend.models import Cluster as ClusterRow
from maat.scheduling.belief import Belief, Fitter, GradientStatistics, TypeBelief
from maat.scheduling.believed_life import BelievedLife, GradientAt
from maat.scheduling.cluster import Cluster
from maat.scheduling.errors import InputError
from maat.scheduling.fitting import Sample
from maat.scheduling.job import JobSpec
from maat.vocabulary import AttemptKind, WithoutRho
from worker.jobs.spec import job_spec
from worker.training.beliefs import belief_of, believed_samples, fit_again

MOST_GRADIENTS = 32
"""Phases of a lone run: of more reports, some are passed over."""


class Without(Exception):
    """The job has no rho, for this reason. `detail`: what the reason does not say."""

    def __init__(self, reason: WithoutRho, detail: str | None = None) -> None:
        super().__init__(reason.value)
        self.reason, self.detail = reason, detail


def simulated_life(session: Session, job: Job, fitter: Fitter) -> BelievedLife:
    """Return what was believed of a simulated job. Raises Without."""
    found = session.get(EndedBelief, job.id)
    if found is None or not found.samples:
        raise Without(WithoutRho.NO_MODEL)
    try:
        spec = job_spec(job, tenant=job.tenant_id)
    except (InputError, KeyError) as error:  # of a catalog that has changed since
        raise Without(WithoutRho.NO_MODEL, str(error)[:500]) from None
    by_type = {
        kind: TypeBelief(tuple(_sample(row) for row in rows), fitter)
        for kind, rows in found.samples.items()
    }
    measured = (
        _gradients(session, job.id)
        if found.gradients is None
        else [_gradient(row) for row in found.gradients]
    )
    return BelievedLife(spec, Belief(by_type), measured, spec.work)


def keep_gradients(session: Session, job_id: str) -> None:
    """Gather the gradients of a simulated job in its belief, and delete their rows.

    One that ended without a belief needs them no more. Those of commands stay: pages show them.
    """
    cluster = session.get_one(ClusterRow, session.get_one(Job, job_id).cluster_id)
    found = session.get(EndedBelief, job_id)
    if cluster.runs_commands or (found is not None and found.gradients is not None):
        return
    if found is not None:
        found.gradients = [
            [one.work, one.gradient.square, one.gradient.variance]
            for one in _gradients(session, job_id)
        ]
        session.add(found)
    session.execute(sa.delete(GradientSample).where(col(GradientSample.job_id) == job_id))


def trained_life(session: Session, job: Job, cluster: Cluster) -> BelievedLife:
    """Return what was believed of a job that ran a command. Raises Without."""
    rows = session.exec(select(StepSample).where(StepSample.job_id == job.id)).all()
    if not rows:
        raise Without(WithoutRho.NO_MODEL)
    attempts = session.exec(
        select(AttemptRow).where(AttemptRow.job_id == job.id).order_by(col(AttemptRow.number))
    ).all()
    command = session.get_one(JobCommand, job.id)
    done = max((a.progress or 0.0 for a in attempts if a.kind == AttemptKind.TRAIN), default=0.0)
    work = command.total_samples or done
    if not work > 0:
        raise Without(WithoutRho.UNKNOWN_WORK)
    samples = believed_samples(rows)
    known = {
        row.gpu_type: row for row in session.exec(select(JobFit).where(JobFit.job_id == job.id))
    }
    fits = {**known, **fit_again(job.id, samples, known, now=job.finished_seconds or 0.0)}
    belief = belief_of(samples, fits, None, attempts)
    spec = _command_spec(session, job, cluster, attempts, work=work)
    return BelievedLife(spec, belief, _gradients(session, job.id), work)


def _command_spec(
    session: Session, job: Job, cluster: Cluster, attempts: Sequence[AttemptRow], *, work: float
) -> JobSpec:
    memory = session.exec(select(JobMemory).where(JobMemory.job_id == job.id))
    return command_spec(
        declaration_of(job),
        id=job.id,
        submitted_at=job.submitted_seconds,
        gpu_types=cluster.type_names,
        work=work,
        out_of_memory_at={row.gpu_type: row.out_of_memory_at for row in memory},
        owner=job.owner_id,
        restart_seconds=restart_seconds(restart_parts(attempts)),
    )


def _gradients(session: Session, job_id: str) -> list[GradientAt]:
    """The gradients by work done, at most MOST_GRADIENTS: spread evenly, the ends among them."""
    columns = (GradientSample.progress, GradientSample.square, GradientSample.variance)
    found = session.execute(
        select(*columns)
        .where(GradientSample.job_id == job_id)
        .order_by(col(GradientSample.progress), col(GradientSample.id))
    ).all()
    if len(found) > MOST_GRADIENTS:
        chosen = np.linspace(0, len(found) - 1, MOST_GRADIENTS).round().astype(int)
        found = [found[i] for i in chosen.tolist()]
    return [_gradient(row) for row in found]


def _gradient(row: Sequence[float]) -> GradientAt:
    work, square, variance = row
    return GradientAt(float(work), GradientStatistics(float(square), float(variance)))


def _sample(row: Sequence[float]) -> Sample:
    nodes, replicas, batch, step, sync = row
    return Sample(int(nodes), int(replicas), int(batch), step, sync)
