"""Takes in what agents report: once each, as a whole or not at all. Commits nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import sqlalchemy as sa
from sqlmodel import Session, col

from backend.attempts.comparisons import add_scores
from backend.attempts.models import AttemptRow, GradientSample, JobMemory
from backend.attempts.refusals import IMPOSSIBLE
from backend.attempts.reported import Reported, read_reported
from backend.attempts.sharing import add_slowdown, company_of
from backend.attempts.steps import add_steps
from backend.clocktime import cluster_seconds, this_moment
from backend.problems import FieldError, Invalid, StaleAttempt
from maat.api.attempts import (
    LEAST_REPORT_SECONDS,
    REPORT_SECONDS,
    GradientBody,
    PlanOut,
    RanksBody,
    ReportBody,
    ReportOut,
)
from maat.scheduling.evidence import Fault, faults_of_ranks, faults_of_steps
from maat.scheduling.plausibility import Progress, Timed, faults_of_progress, faults_of_time

KEPT_GRADIENTS = 500  # of a job
FORGETS_EVERY = 20  # reports of an attempt, the first included; until then a job may have more

_UPDATE = sa.update(AttemptRow).where(col(AttemptRow.id) == sa.bindparam("attempt"))
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


def take_report(session: Session, attempt_id: str, body: ReportBody) -> ReportOut:
    """Store a report; one that was stored before changes nothing.

    Raises StaleAttempt if the attempt is over, or another agent reports for it; Invalid naming what
    cannot be.
    """
    attempt = read_reported(session, attempt_id)
    _refuse_stale(attempt, body)
    if body.sequence > attempt.report_sequence:
        wrong = list(_impossible(attempt, body))
        if wrong:
            raise Invalid(" ".join(error.message for error in wrong), errors=wrong)
        _store(session, attempt, body)
    return ReportOut(
        accepted=max(body.sequence, attempt.report_sequence),
        plan=_plan(attempt) if attempt.plan_number > body.plan_number else None,
        stop=attempt.stop_reason is not None,
        report_seconds=_report_seconds(attempt.round_seconds),
    )


def _report_seconds(round_seconds: float) -> float:
    """Return the time to the next report: two come in every round, at most one in two seconds."""
    return min(max(round_seconds / 2, LEAST_REPORT_SECONDS), REPORT_SECONDS)


def _refuse_stale(attempt: Reported, body: ReportBody) -> None:
    if attempt.is_over:
        raise StaleAttempt("The attempt is over: end at once, and save nothing.")
    if attempt.incarnation not in (None, body.incarnation):
        raise StaleAttempt("Another agent reports for this attempt: end at once, and save nothing.")


def _impossible(attempt: Reported, body: ReportBody) -> Iterator[FieldError]:
    """Find what cannot be true of this attempt."""
    if body.world_size != attempt.gpu_count:
        yield _wrong("/world_size", f"The attempt has {attempt.gpu_count} GPUs.", body.world_size)
    if body.gpu_type != attempt.gpu_type:
        yield _wrong("/gpu_type", f"The attempt is on {attempt.gpu_type}.", body.gpu_type)
    if body.ranks is not None:
        yield from _impossible_ranks(attempt, body.ranks)
    lived = _lived_seconds(attempt)
    for fault in faults_of_time(_timed(attempt, body), lived_seconds=lived):
        yield _of_fault("", fault)
    for fault in faults_of_progress(_said(body), largest_batch=_largest_batch(attempt, body)):
        yield _of_fault("", fault)
    for index, found in enumerate(body.passes):
        if found.replica_count > attempt.gpu_count or found.node_count > len(attempt.gpus_by_node):
            message = "The attempt has no so many replicas or nodes."
            yield _wrong(f"/passes/{index}/replica_count", message, found.replica_count)
        for fault in faults_of_steps(found.step_seconds.mean, found.steps, lived_seconds=lived):
            yield _of_fault(f"/passes/{index}", fault)
        if found.sync_seconds > found.step_seconds.mean:
            message = "Synchronisation takes longer than the step that it is a part of."
            yield _wrong(f"/passes/{index}/sync_seconds", message, found.sync_seconds)
        total = found.per_gpu_batch_size * found.replica_count * (found.accumulation_steps + 1)
        rounding = found.replica_count * (found.accumulation_steps + 1)  # a sample in every pass
        if attempt.max_batch_size is not None and total >= attempt.max_batch_size + rounding:
            message = f"The job's batch size is at most {attempt.max_batch_size}."
            yield _wrong(f"/passes/{index}/per_gpu_batch_size", message, found.per_gpu_batch_size)


def _impossible_ranks(attempt: Reported, ranks: RanksBody) -> Iterator[FieldError]:
    if len(ranks.compute_seconds) != attempt.gpu_count:
        message = f"The attempt has {attempt.gpu_count} ranks: one time for each."
        yield _wrong("/ranks/compute_seconds", message, len(ranks.compute_seconds))
        return
    for fault in faults_of_ranks(ranks.compute_seconds):
        yield _of_fault("/ranks/compute_seconds", fault)


def _timed(attempt: Reported, body: ReportBody) -> Timed:
    """Return what the attempt has timed, with this report."""
    fresh = [Timed(one.steps, one.steps * one.step_seconds.mean) for one in body.passes]
    return sum(fresh, Timed(attempt.timed_steps, attempt.timed_seconds))


def _said(body: ReportBody) -> Progress:
    said = body.progress
    return Progress(said.steps, said.processed_samples, said.gained_samples)


def _largest_batch(attempt: Reported, body: ReportBody) -> int | None:
    """Return the most samples of a step, by the job and by these steps; None if nobody limits it.

    Every pass on every replica may have one sample more than the job's batch size divides into.
    """
    if attempt.max_batch_size is None:
        return None
    ran = [
        one.per_gpu_batch_size * one.replica_count * (one.accumulation_steps + 1)
        for one in body.passes
    ]
    return max(2 * attempt.max_batch_size, *ran, 1)


def _lived_seconds(attempt: Reported) -> float | None:
    """Return how long the attempt has held its GPUs; None if that is not known."""
    if attempt.queued_seconds is None:
        return None
    now = cluster_seconds(attempt, this_moment(attempt.database_now))
    return max(now - attempt.queued_seconds, 0.0)


def _of_fault(part: str, fault: Fault) -> FieldError:
    return FieldError(part + fault.pointer, IMPOSSIBLE, fault.problem, fault.remedy, fault.value)


def _wrong(pointer: str, message: str, value: object) -> FieldError:
    return FieldError(pointer, IMPOSSIBLE, message, "Report what was measured.", value)


def _store(session: Session, attempt: Reported, body: ReportBody) -> None:
    moment = this_moment(attempt.database_now)
    now = cluster_seconds(attempt, moment)
    company = company_of(session, attempt)
    for found in body.passes:
        if company.is_alone:
            add_steps(session, attempt, found, now)
        elif company.partner is not None:
            add_slowdown(session, attempt, found, company.partner, now)
    if body.ranks is not None and company.is_alone:
        add_scores(session, attempt, body.ranks.compute_seconds, now)
    if body.gradient is not None:
        _add_gradient(session, attempt, body.gradient, body.progress.effective_samples, now)
    if (body.sequence - 1) % FORGETS_EVERY == 0:
        _forget_gradients(session, attempt.job_id)
    if body.memory is not None:
        _add_memory(session, attempt, body.memory.out_of_memory_at)
    total, timed = body.progress.total_effective_samples, _timed(attempt, body)
    values = {
        **_progress(attempt, body, now),
        "trouble": body.trouble,
        "incarnation": body.incarnation,
        "report_sequence": body.sequence,
        "reported_at": moment.wall,
        "reported_seconds": now,
        "total_samples": total or attempt.total_samples,
        "least_total_samples": _least(total, attempt.least_total_samples),
        "timed_steps": timed.steps,
        "timed_seconds": timed.seconds,
        "timed_since": _timed_since(attempt, timed, now),
        "loss": attempt.loss if body.loss is None else body.loss,
    }
    if body.plan_number == attempt.plan_number and attempt.running_plan != attempt.plan:
        values["running_plan"] = attempt.plan
    session.connection().execute(_UPDATE, {"attempt": attempt.id, **values})


def _timed_since(attempt: Reported, timed: Timed, now: float) -> float | None:
    """Return when the first step that was timed began, cluster seconds; None before its report."""
    if attempt.timed_since is not None or not timed.steps:
        return attempt.timed_since
    return now - timed.seconds


def _least(total: float | None, before: float | None) -> float | None:
    named = [each for each in (total, before) if each]
    return min(named, default=None)


def _progress(attempt: Reported, body: ReportBody, now: float) -> Mapping[str, object]:
    """Return how far the job is. A profile does not take it any further."""
    if attempt.is_profile:
        return {"stepping_seconds": body.stepping_seconds}
    done, goodput = body.progress.effective_samples, attempt.goodput
    if attempt.reported_seconds is not None and attempt.progress is not None:
        passed = now - attempt.reported_seconds
        if passed > 0 and done > attempt.progress:
            goodput = (done - attempt.progress) / passed
    saved, restored = body.checkpoint, body.restore_seconds
    is_new = saved is not None and saved.step != attempt.checkpoint_step
    processed, gained = body.progress.processed_samples, body.progress.gained_samples
    return {
        "progress": done,
        "goodput": goodput,
        "processed_samples": attempt.processed_samples if processed is None else processed,
        "gained_samples": attempt.gained_samples if gained is None else gained,
        "checkpoint_seconds": now if is_new else attempt.checkpoint_seconds,
        "finished": attempt.finished or body.finished,
        "checkpoint_step": attempt.checkpoint_step if saved is None else saved.step,
        "restore_seconds": attempt.restore_seconds if restored is None else restored,
    }


def _add_gradient(
    session: Session, attempt: Reported, found: GradientBody, progress: float, now: float
) -> None:
    """Add a measured gradient to its job's history."""
    values = {
        "job_id": attempt.job_id,
        "at_seconds": now,
        "square": found.square,
        "variance": found.variance,
        "steps": found.steps,
        "batch_size": found.at_batch_size,
        "progress": progress,
    }
    session.connection().execute(_ADD_GRADIENT, values)


def _forget_gradients(session: Session, job_id: str) -> None:
    """Keep the newest KEPT_GRADIENTS of a job."""
    asked = {"job": job_id, "newer": KEPT_GRADIENTS - 1}
    session.connection().execute(_FORGET_GRADIENTS, asked)


def _add_memory(session: Session, attempt: Reported, too_many: int) -> None:
    """Keep the fewest samples for which this GPU type had no room."""
    known = session.get(JobMemory, (attempt.job_id, attempt.gpu_type))
    if known is None:
        known = JobMemory(
            job_id=attempt.job_id, gpu_type=attempt.gpu_type, out_of_memory_at=too_many
        )
    known.out_of_memory_at = min(known.out_of_memory_at, too_many)
    session.add(known)


def _plan(attempt: Reported) -> PlanOut | None:
    if attempt.plan is None:
        return None
    return PlanOut(
        number=attempt.plan_number,
        total_batch_size=attempt.plan["total_batch_size"],
        per_gpu_batch_size=attempt.plan["per_gpu_batch_size"],
        accumulation_steps=attempt.plan["accumulation_steps"],
    )
