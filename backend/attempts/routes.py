"""Routes of attempts: what agents report, and what users see of it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from backend.accounts.identity import Principal, require
from backend.accounts.permissions import Permission
from backend.attempts.reports import take_report
from backend.attempts.repository import attempts_of, samples_of
from backend.attempts.resources import show_attempt, show_sample
from backend.attempts.tokens import ReportingAttempt
from backend.clusters.models import Cluster
from backend.jobs.repository import get_job
from backend.pagination import Cursor, Limit, link_next
from backend.web.bodies import JOB_BYTES, takes_bytes
from backend.web.dependencies import SessionDep
from backend.web.strict_json import StrictRoute
from maat.api.attempts import AttemptOut, ReportBody, ReportOut, StepSampleOut
from maat.api.fields import Page

router = APIRouter(tags=["attempts"], route_class=StrictRoute)

Reader = Annotated[Principal, Depends(require(Permission.JOBS_READ))]


@router.post("/attempts/{attempt_id}/reports", operation_id="report")
@takes_bytes(JOB_BYTES)
def report(session: SessionDep, attempt_id: ReportingAttempt, body: ReportBody) -> ReportOut:
    """Report for an attempt, with its own token.

    A report that was accepted before is accepted again and changes nothing. 409 `stale-attempt`:
    the attempt is over, and its processes must end without saving.
    """
    return take_report(session, attempt_id, body)


@router.get("/jobs/{job_id}/attempts", operation_id="listJobAttempts")
def list_attempts(
    request: Request,
    response: Response,
    session: SessionDep,
    principal: Reader,
    job_id: str,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[AttemptOut]:
    """The lives of the job's processes, oldest first. A job that is played has none."""
    job = get_job(session, principal, job_id)
    found = attempts_of(session, job.id, limit=limit, cursor=cursor)
    link_next(request, response, found.next_cursor)
    cluster = session.get_one(Cluster, job.cluster_id)
    return found.shown(lambda row: show_attempt(row, cluster))


@router.get("/jobs/{job_id}/samples", operation_id="listJobSamples")
def list_samples(
    request: Request,
    response: Response,
    session: SessionDep,
    principal: Reader,
    job_id: str,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[StepSampleOut]:
    """The step times that were measured of the job, by configuration."""
    job = get_job(session, principal, job_id)
    found = samples_of(session, job.id, limit=limit, cursor=cursor)
    link_next(request, response, found.next_cursor)
    cluster = session.get_one(Cluster, job.cluster_id)
    return found.shown(lambda row: show_sample(row, cluster))
