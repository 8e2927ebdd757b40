"""Takes in what agents report: once each, as a whole or not at all. Commits nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.orm import aliased
from sqlmodel import Session, col

from backend.attempts.comparisons import add_scores, add_sharing, partner_of
from backend.attempts.models import AttemptRow, GradientSample, JobMemory
from backend.attempts.steps import add_steps
from backend.clocktime import cluster_seconds
from backend.clusters.models import Cluster
from backend.jobs.models import Job
from backend.moments import moment_of
from backend.problems import FieldError, Invalid, NotFound, StaleAttempt
from maat.api.attempts import (
    LEAST_REPORT_SECONDS,
    REPORT_SECONDS,
    GradientBody,
    PlanOut,
    ReportBody,
    ReportOut,
)
from maat.vocabulary import AttemptKind, AttemptState

KEPT_GRADIENTS = 500  # of a job

# Reports are most of what the service is asked, and making a statement takes longer than the
# database needs for its answer: these are made once.
_NUMBERED = aliased(AttemptRow)
_READ = (
    sa.select(
        AttemptRow,
        Job,
        Cluster,
        sa.select(sa.func.max(col(_NUMBERED.number)))
        .where(col(_NUMBERED.job_id) == col(AttemptRow.job_id))
        .scalar_subquery(),
    )
    .join(Job, col(Job.id) == col(AttemptRow.job_id))
    .join(Cluster, col(Cluster.id) == col(AttemptRow.cluster_id))
    .where(col(AttemptRow.id) == sa.bindparam("attempt"))
    .with_for_update(of=AttemptRow)
)
_ADD_GRADIENT = sa.insert(GradientSample)
_OF_JOB = col(GradientSample.job_id) == sa.bindparam("job")
_FORGET_GRADIENTS = sa.delete(GradientSample).where(
    _OF_JOB,
    col(GradientSample.id)
    < sa.select(col(GradientSample.id))
    .where(_OF_JOB)
    .order_by(col(GradientSample.id).desc())
    .offset(sa.bindparam("newer"))
    .limit(1)
    .scalar_subquery(),
)


@dataclass(frozen=True)
class _Reported:
    """The attempt that is reported for, locked, and what it belongs to.

    `newest`: the highest number of the job's attempts.
    """

    row: AttemptRow
    job: Job
    cluster: Cluster
    newest: int


def take_report(session: Session, attempt_id: str, body: ReportBody) -> ReportOut:
    """Store a report; one that was stored before changes nothing.

    Raises StaleAttempt if the attempt is over, or another agent reports for it; Invalid naming what
    cannot be.
    """
    found = session.execute(_READ, {"attempt": attempt_id}).first()
    if found is None:
        raise NotFound("There is no such attempt.")
    reported = _Reported(*found)
    row = reported.row
    _refuse_stale(reported, body)
    if body.sequence > row.report_sequence:
        wrong = list(_impossible(row, reported.job, body))
        if wrong:
            raise Invalid(" ".join(error.message for error in wrong), errors=wrong)
        _store(session, reported, body)
    asked = row.stop_reason is not None
    return ReportOut(
        accepted=row.report_sequence,
        plan=_plan(row) if row.plan_number > body.plan_number else None,
        stop=asked,
        report_seconds=_report_seconds(reported.cluster),
    )


def _report_seconds(cluster: Cluster) -> float:
    """Return the time to the next report: two come in every round, at most one in two seconds."""
    return min(max(cluster.round_seconds / 2, LEAST_REPORT_SECONDS), REPORT_SECONDS)


def _refuse_stale(reported: _Reported, body: ReportBody) -> None:
    row = reported.row
    is_over = row.state == AttemptState.ENDED
    if is_over or (reported.newest != row.number and row.stop_reason is None):
        raise StaleAttempt("The attempt is over: end at once, and save nothing.")
    if row.incarnation not in (None, body.incarnation):
        raise StaleAttempt("Another agent reports for this attempt: end at once, and save nothing.")


def _impossible(row: AttemptRow, job: Job, body: ReportBody) -> Iterator[FieldError]:
    """Find what cannot be true of this attempt."""
    if body.world_size != row.gpu_count:
        yield _wrong("/world_size", f"The attempt has {row.gpu_count} GPUs.", body.world_size)
    if body.gpu_type != row.gpu_type:
        yield _wrong("/gpu_type", f"The attempt is on {row.gpu_type}.", body.gpu_type)
    if body.ranks is not None and len(body.ranks.compute_seconds) != row.gpu_count:
        message = f"The attempt has {row.gpu_count} ranks: one time for each."
        yield _wrong("/ranks/compute_seconds", message, len(body.ranks.compute_seconds))
    for index, found in enumerate(body.passes):
        if found.replica_count > row.gpu_count or found.node_count > len(row.gpus_by_node):
            message = "The attempt has no so many replicas or nodes."
            yield _wrong(f"/passes/{index}/replica_count", message, found.replica_count)
        if found.sync_seconds > found.step_seconds.mean:
            message = "Synchronisation takes longer than the step that it is a part of."
            yield _wrong(f"/passes/{index}/sync_seconds", message, found.sync_seconds)
        total = found.per_gpu_batch_size * found.replica_count * (found.accumulation_steps + 1)
        rounding = found.replica_count * (found.accumulation_steps + 1)  # a sample in every pass
        if job.max_batch_size is not None and total >= job.max_batch_size + rounding:
            message = f"The job's batch size is at most {job.max_batch_size}."
            yield _wrong(f"/passes/{index}/per_gpu_batch_size", message, found.per_gpu_batch_size)


def _wrong(pointer: str, message: str, value: object) -> FieldError:
    return FieldError(pointer, "impossible", message, "Report what was measured.", value)


def _store(session: Session, reported: _Reported, body: ReportBody) -> None:
    row, model, moment = reported.row, reported.job.model, moment_of(session)
    now = cluster_seconds(reported.cluster, moment)
    shared = partner_of(session, row, model)
    for found in body.passes:
        if shared is None:
            add_steps(session, row, found, now)
        else:
            add_sharing(session, row, found, shared, now)
    if body.ranks is not None and shared is None:
        add_scores(session, row, model, body.ranks.compute_seconds, now)
    if body.gradient is not None:
        _add_gradient(session, row, body.gradient, body.progress.effective_samples, now)
    if body.memory is not None:
        _add_memory(session, row, body.memory.out_of_memory_at)
    _note_progress(row, body, now)
    row.trouble = body.trouble
    row.incarnation, row.report_sequence = body.incarnation, body.sequence
    row.reported_at, row.reported_seconds = moment.wall, now
    row.total_samples = body.progress.total_effective_samples or row.total_samples
    row.loss = row.loss if body.loss is None else body.loss
    if body.plan_number == row.plan_number:
        row.running_plan = row.plan
    session.add(row)
    session.flush()


def _note_progress(row: AttemptRow, body: ReportBody, now: float) -> None:
    """Note how far the job is. A profile does not take it any further."""
    if row.kind == AttemptKind.PROFILE:
        row.stepping_seconds = body.stepping_seconds
        return
    done = body.progress.effective_samples
    if row.reported_seconds is not None and row.progress is not None:
        passed = now - row.reported_seconds
        if passed > 0 and done > row.progress:
            row.goodput = (done - row.progress) / passed
    row.progress = done
    row.finished = row.finished or body.finished
    if body.checkpoint is not None:
        row.checkpoint_step = body.checkpoint.step
    if body.restore_seconds is not None:
        row.restore_seconds = body.restore_seconds


def _add_gradient(
    session: Session, row: AttemptRow, found: GradientBody, progress: float, now: float
) -> None:
    """Add a measured gradient to its job's history, and forget the oldest ones."""
    values = {
        "job_id": row.job_id,
        "at_seconds": now,
        "square": found.square,
        "variance": found.variance,
        "steps": found.steps,
        "batch_size": found.at_batch_size,
        "progress": progress,
    }
    connection = session.connection()
    connection.execute(_ADD_GRADIENT, values)
    connection.execute(_FORGET_GRADIENTS, {"job": row.job_id, "newer": KEPT_GRADIENTS - 1})


def _add_memory(session: Session, row: AttemptRow, too_many: int) -> None:
    """Keep the fewest samples for which this GPU type had no room."""
    known = session.get(JobMemory, (row.job_id, row.gpu_type))
    if known is None:
        known = JobMemory(job_id=row.job_id, gpu_type=row.gpu_type, out_of_memory_at=too_many)
    known.out_of_memory_at = min(known.out_of_memory_at, too_many)
    session.add(known)


def _plan(row: AttemptRow) -> PlanOut | None:
    if row.plan is None:
        return None
    return PlanOut(
        number=row.plan_number,
        total_batch_size=row.plan["total_batch_size"],
        per_gpu_batch_size=row.plan["per_gpu_batch_size"],
        accumulation_steps=row.plan["accumulation_steps"],
    )
