"""Asks for rho to be worked out again, and says that a job need not be. Commits nothing.

The worker does the work (worker/fairness).
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlmodel import Session, col, func, select

from backend.accounts.identity import Principal
from backend.clocktime import utc_now
from backend.fairness.models import JobFairness, settled_state
from backend.fairness.repository import ended_between
from backend.jobs.repository import get_job
from backend.operations.models import Operation, OperationState
from backend.problems import Conflict, FieldError, Invalid, NotFound
from maat.api.fairness import RecomputeBody
from maat.api.fields import rfc3339
from maat.vocabulary import WithoutRho

KIND = "fairness"
_ENDED = (OperationState.SUCCEEDED, OperationState.FAILED, OperationState.CANCELLED)


def request_again(
    session: Session, principal: Principal, body: RecomputeBody, *where: sa.ColumnElement[bool]
) -> Operation:
    """Queue these jobs once more; each keeps its rho until it has the new one.

    Those that are on their way already are none of it. Raises Invalid if there is no such job.
    """
    wanted = [*where, _visible(principal)]
    settled = col(JobFairness.state).in_(_ENDED)
    count = select(func.count()).select_from(JobFairness)
    many = session.exec(count.where(*wanted, settled)).one()
    if not many and session.exec(count.where(*wanted)).one():
        raise Conflict(
            "rho of these jobs is being worked out already. Wait for it, or cancel its operation."
        )
    if not many:
        raise _invalid(
            "/from" if body.from_ is not None else "/period",
            "no_jobs",
            "No job ended in this period.",
            "Give a period in which jobs have ended, in cluster time.",
            (body.period or "this-week") if body.from_ is None else rfc3339(body.from_),
        )
    operation = Operation(
        kind=KIND,
        state=OperationState.RUNNING,
        total=float(many),
        unit="jobs",
        message=f"0 of {many} jobs worked out.",
        owner_id=principal.user_id,
        tenant_id=principal.tenant_id,
        started_at=utc_now(),
        result_url="/api/v1/fairness",
    )
    session.add(operation)
    session.flush()
    queued = {"state": OperationState.QUEUED, "started_at": None, "heartbeat_at": None}
    asked = {"operation_id": operation.id, "cancel_requested": False}
    again = sa.update(JobFairness).where(*wanted, settled)
    session.execute(again.values(**queued, **asked))
    return operation


def check_either(body: RecomputeBody) -> None:
    """Raise Invalid if a request names jobs and a period."""
    if body.job_ids is not None and any((body.period, body.from_, body.to)):
        raise _invalid(
            "/job_ids",
            "either_or",
            "The request names jobs and a period.",
            "Give job_ids, or a period, or from and to.",
            body.job_ids,
        )


def of_jobs(session: Session, cluster_id: str, job_ids: list[str]) -> sa.ColumnElement[bool]:
    """Select jobs by id. Raises Invalid naming the first that has not ended here."""
    mine = (JobFairness.cluster_id == cluster_id, col(JobFairness.job_id).in_(job_ids))
    known = set(session.exec(select(JobFairness.job_id).where(*mine)))
    for number, job_id in enumerate(job_ids):
        if job_id not in known:
            raise _invalid(
                f"/job_ids/{number}",
                "no_such_job",
                "The cluster has no job with this id that has ended.",
                "Give ids of jobs that have ended, or a period.",
                job_id,
            )
    return col(JobFairness.job_id).in_(job_ids)


def in_period(cluster_id: str, begin: float, end: float) -> sa.ColumnElement[bool]:
    return sa.and_(*ended_between(cluster_id, begin, end))


def skip(session: Session, principal: Principal, job_id: str) -> JobFairness:
    """Say that rho of a job need not be worked out; a computation in progress ends soon.

    A job that had a rho keeps it. Raises NotFound, Conflict if there is nothing to skip.
    """
    row = fairness_row(session, principal, job_id, lock=True)
    if row.state == OperationState.RUNNING:
        row.cancel_requested = True
    elif row.state == OperationState.QUEUED:
        if row.formula_version is None:
            row.reason, row.finished_at = WithoutRho.SKIPPED.value, utc_now()
        row.state = settled_state(row.reason)
    elif row.state != OperationState.CANCELLED:
        raise Conflict("rho of this job is worked out: nothing is left to skip.")
    session.add(row)
    session.flush()
    return row


def fairness_row(
    session: Session, principal: Principal, job_id: str, *, lock: bool = False
) -> JobFairness:
    """Find rho of a job. Raises NotFound, for a job that has not ended too."""
    job = get_job(session, principal, job_id)
    row = session.get(JobFairness, job.id, with_for_update=lock or None)
    if row is None:
        raise NotFound("The job has not ended, so it has no rho yet: ask again once it has.")
    return row


def _visible(principal: Principal) -> sa.ColumnElement[bool]:
    if principal.sees_all_tenants:
        return sa.true()
    return col(JobFairness.tenant_id) == principal.tenant_id


def _invalid(pointer: str, code: str, message: str, remedy: str, value: object) -> Invalid:
    return Invalid(
        f"{message} {remedy}", errors=[FieldError(pointer, code, message, remedy, value)]
    )
