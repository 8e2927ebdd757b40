"""What people ask of jobs that live: to end, to pause, to go on. Commits nothing.

A request is a wish in the job's row; the next round carries it out, so that no round is decided on
a job that has changed in the meantime. A client that repeats a request because the answer was lost
finds the job as it asked for.
"""

from __future__ import annotations

from datetime import datetime

from sqlmodel import Session

from backend.accounts.identity import Principal
from backend.audit.changes import Change, actor_of, record
from backend.clocktime import cluster_seconds, seconds_at, shown_at
from backend.clusters.models import Cluster
from backend.jobs.deadlines import objection_to
from backend.jobs.dependencies import drop_failed_needs, failed_needs, open_needs
from backend.jobs.models import Job, JobEvent
from backend.jobs.permits import permit_priority, permit_weight
from backend.jobs.repository import get_job
from backend.jobs.requests import REQUEST, check_request
from backend.moments import moment_of
from backend.problems import Conflict, Forbidden, Invalid
from backend.web.conditional import check_version, check_version_if_sent
from maat.api.fields import rfc3339
from maat.api.jobs import JobChanges
from maat.scheduling.events import TERMINAL, EventKind
from maat.vocabulary import JobState

_READ_BY_ROUNDS = REQUEST | {
    "priority",
    "weight",
    "deadline_seconds",
    "least_stay_seconds",
    "most_moves_per_hour",
}


def request_cancel(
    session: Session, principal: Principal, job_id: str, if_match: str | None
) -> Job:
    """Ask for the end of a job.

    A job that is asked to end, or cancelled, stays as it is; raises Conflict if it ended otherwise.
    """
    job = _job_to_change(session, principal, job_id, "cancel")
    if job.cancel_requested and job.state not in (JobState.SUCCEEDED, JobState.FAILED):
        return job
    check_version_if_sent(if_match, job.version)
    _check_it_lives(job)
    if not job.cancel_requested:
        job.cancel_requested = True
        _store(session, job)
        _record(session, principal, "cancel job", job)
    return job


def request_pause(
    session: Session,
    principal: Principal,
    job_id: str,
    if_match: str | None,
    *,
    only_before_start: bool = False,
) -> Job:
    """Ask that rounds leave a job out. A paused job stays as it is.

    `only_before_start`: raises Conflict if it holds GPUs.
    """
    job = _job_to_change(session, principal, job_id, "pause")
    if job.pause_requested:
        return job
    check_version_if_sent(if_match, job.version)
    _check_it_lives(job)
    if only_before_start and job.gpus is not None:
        raise Conflict("The job holds GPUs, and a hold takes none away. Pause it instead.")
    job.pause_requested, job.paused_by = True, name_towards(principal, job.tenant_id)
    action = "hold" if only_before_start else "pause"
    note_asked(session, principal, job, action)
    _store(session, job)
    _record(session, principal, f"{action} job", job)
    return job


def request_resume(
    session: Session, principal: Principal, job_id: str, if_match: str | None
) -> Job:
    """Put a paused job back into the queue, as of its submission. Another job stays as it is.

    One that nobody paused no longer waits for jobs that have failed or were cancelled. Raises
    Conflict if it waits for others.
    """
    job = _job_to_change(session, principal, job_id, "resume")
    _check_it_lives(job)
    failed = failed_needs(session, job.id)
    if not job.pause_requested and not failed:
        _check_it_waits_for_none(session, job)
        return job
    check_version_if_sent(if_match, job.version)
    if not job.pause_requested:
        drop_failed_needs(session, [job.id])
    job.pause_requested, job.paused_by = False, None
    note_asked(session, principal, job, "resume")
    _store(session, job)
    _record(session, principal, "resume job", job)
    return job


def change_job(
    session: Session, principal: Principal, job_id: str, changes: JobChanges, if_match: str | None
) -> Job:
    """Set what was given. Values equal to the present ones make no new version.

    Raises PreconditionRequired without If-Match, Invalid for a deadline that has passed, and what
    `check_request` raises.
    """
    job = _job_to_change(session, principal, job_id, "change")
    check_version(if_match, job.version)
    _check_it_lives(job)
    given = changes.model_dump(exclude_unset=True, exclude={"deadline"})
    if "deadline" in changes.model_fields_set:
        given["deadline_seconds"] = _deadline_in_seconds(session, job, changes.deadline)
    changed = {name: value for name, value in given.items() if value != getattr(job, name)}
    if not changed:
        return job
    if "priority" in changed:
        permit_priority(principal, changed["priority"])
    if "weight" in changed:
        permit_weight(principal, changed["weight"])
    request = {name: value for name, value in changed.items() if name in REQUEST}
    if request:
        check_request(session, job, request)
    before = {name: getattr(job, name) for name in changed}
    for name, value in changed.items():
        setattr(job, name, value)
    if changed.keys() & _READ_BY_ROUNDS:
        job.declared_version += 1
    told = {name: str(value) for name, value in changed.items() if name != "deadline_seconds"}
    if "deadline_seconds" in changed:
        told["deadline"] = "none" if changes.deadline is None else rfc3339(changes.deadline)
    note_asked(session, principal, job, "change", **told)
    _store(session, job)
    actor = actor_of(principal)
    record(session, Change(actor, "change job", job.id, before, changed, job.tenant_id))
    return job


def note_asked(session: Session, principal: Principal, job: Job, action: str, **what: str) -> None:
    """Write into the job's history who asked for what."""
    cluster = session.get_one(Cluster, job.cluster_id)
    session.add(
        JobEvent(
            job_id=job.id,
            cluster_id=job.cluster_id,
            cluster_seconds=cluster_seconds(cluster, moment_of(session)),
            kind=EventKind.ASKED.value,
            data={"action": action, "by": name_towards(principal, job.tenant_id), **what},
        )
    )


def name_towards(principal: Principal, tenant_id: str) -> str:
    """Return a user's name as a job's tenant may read it."""
    return principal.user_name if principal.tenant_id == tenant_id else "an administrator"


def _job_to_change(session: Session, principal: Principal, job_id: str, verb: str) -> Job:
    """Return the job, locked. Raises NotFound, Forbidden."""
    job = get_job(session, principal, job_id, lock=True)
    if not principal.may_change(owner_id=job.owner_id, tenant_id=job.tenant_id):
        raise Forbidden(
            "The job belongs to another user. "
            f"Its owner, or a manager of its tenant, may {verb} it."
        )
    return job


def _check_it_waits_for_none(session: Session, job: Job) -> None:
    needs = open_needs(session, job.id)
    if any(need.state != JobState.SUCCEEDED for need in needs):
        named = ", ".join(f"{need.id} ({need.state})" for need in needs)
        raise Conflict(
            f"The job is not paused: it waits for {named}. To start it now, cancel it and submit "
            "it again without `after`."
        )


def _check_it_lives(job: Job) -> None:
    if job.state in TERMINAL:
        raise Conflict(f"The job has already ended: {job.state}.")


def _deadline_in_seconds(session: Session, job: Job, wished: datetime | None) -> float | None:
    """Return a deadline in cluster time; the present one, which is shown rounded, unchanged.

    Raises Invalid for another that has passed.
    """
    cluster, present = session.get_one(Cluster, job.cluster_id), job.deadline_seconds
    if wished is None:
        return None
    if present is not None and shown_at(cluster, present) == rfc3339(wished):
        return present
    wrong = objection_to(wished, cluster, moment_of(session))
    if wrong:
        raise Invalid(f"{wrong.message} {wrong.remedy}", errors=[wrong])
    return seconds_at(cluster, wished)


def _record(session: Session, principal: Principal, action: str, job: Job) -> None:
    before, after = {"state": job.state}, {"name": job.name, "owner_id": job.owner_id}
    actor = actor_of(principal)
    record(session, Change(actor, action, job.id, before, after, job.tenant_id))


def _store(session: Session, job: Job) -> None:
    job.version += 1
    session.add(job)
    session.flush()
