"""Routes of what people ask of one job: to end, to pause, to go on, to change, to be copied."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response
from sqlmodel import Session

from backend.accounts.identity import Principal, require
from backend.accounts.permissions import Permission
from backend.commands.service import without_secrets
from backend.idempotency import Answer, KeyHeader, Once, answer_prepared
from backend.jobs.candidates import Candidate
from backend.jobs.changing import change_job, request_cancel, request_pause, request_resume
from backend.jobs.cloning import body_like
from backend.jobs.finder import FinderDep
from backend.jobs.flags import dismiss_flag
from backend.jobs.models import Job
from backend.jobs.repository import get_job
from backend.jobs.resources import show_job
from backend.jobs.service import checked_job, store_jobs
from backend.jobs.warnings import with_warnings
from backend.secret_key import secret_key
from backend.web.bodies import JOB_BYTES, takes_bytes
from backend.web.conditional import IfMatch, etag
from backend.web.dependencies import ReadingDep, SessionDep, SettingsDep
from backend.web.strict_json import StrictRoute
from maat.api.job_answers import JobOut
from maat.api.jobs import CloneBody, JobChanges
from maat.vocabulary import Doubted

router = APIRouter(tags=["jobs"], route_class=StrictRoute)

Changer = Annotated[Principal, Depends(require(Permission.JOBS_CHANGE))]
Submitter = Annotated[Principal, Depends(require(Permission.JOBS_SUBMIT))]
Dismisser = Annotated[Principal, Depends(require(Permission.JOBS_DISMISS))]
Canceller = Annotated[Principal, Depends(require(Permission.JOBS_CANCEL))]


@router.post("/jobs/{job_id}/actions/cancel", operation_id="cancelJob")
def cancel_job(
    session: SessionDep,
    principal: Canceller,
    job_id: str,
    response: Response,
    if_match: IfMatch = None,
) -> JobOut:
    """Ask for the end of a job.

    `cancel_requested` is true at once; the next round sets the state.

    Repeating the request changes nothing, also after the job is cancelled; a job that ended
    otherwise is a conflict. If-Match is checked if it is sent.
    """
    return _changed(
        session, principal, response, request_cancel(session, principal, job_id, if_match)
    )


@router.post("/jobs/{job_id}/actions/pause", operation_id="pauseJob")
def pause_job(
    session: SessionDep,
    principal: Changer,
    job_id: str,
    response: Response,
    if_match: IfMatch = None,
) -> JobOut:
    """Ask that rounds leave a job out, until it is resumed.

    `pause_requested` is true at once. The next round takes its GPUs, after a checkpoint, and sets
    the state. Repeating the request changes nothing.
    """
    return _changed(
        session, principal, response, request_pause(session, principal, job_id, if_match)
    )


@router.post("/jobs/{job_id}/actions/hold", operation_id="holdJob")
def hold_job(
    session: SessionDep,
    principal: Changer,
    job_id: str,
    response: Response,
    if_match: IfMatch = None,
) -> JobOut:
    """Pause a job that holds no GPUs, so that it does not start; 409 if it holds some."""
    held = request_pause(session, principal, job_id, if_match, only_before_start=True)
    return _changed(session, principal, response, held)


@router.post("/jobs/{job_id}/actions/resume", operation_id="resumeJob")
@router.post("/jobs/{job_id}/actions/release", operation_id="releaseJob")
def resume_job(
    session: SessionDep,
    principal: Changer,
    job_id: str,
    response: Response,
    if_match: IfMatch = None,
) -> JobOut:
    """End the pause of a job: the next round considers it again, as of its submission.

    `release` is the same. A job that is not paused stays as it is.
    """
    resumed = request_resume(session, principal, job_id, if_match)
    return _changed(session, principal, response, resumed)


@router.post("/jobs/{job_id}/flags/{kind}/actions/dismiss", operation_id="dismissJobFlag")
def dismiss(
    session: SessionDep, principal: Dismisser, job_id: str, kind: Doubted, response: Response
) -> JobOut:
    """Say that what the job reports is right, though it is unlikely: it is believed again.

    Rounds flag it for the same no more. Repeating the request changes nothing.
    """
    return _changed(session, principal, response, dismiss_flag(session, principal, job_id, kind))


@router.patch("/jobs/{job_id}", operation_id="changeJob")
def change(
    session: SessionDep,
    principal: Changer,
    job_id: str,
    changes: JobChanges,
    response: Response,
    if_match: IfMatch = None,
) -> JobOut:
    """Change a job that lives: name, priority, weight, labels, deadline, and what it asks for.

    What it asks for (GPU types and counts) changes only while it holds no GPUs, adaptivity and
    batch size only before it has held any: 409 otherwise. The next round sees the change. All else
    of a job stays as it was submitted: clone it to change more.
    """
    changed = change_job(session, principal, job_id, changes, if_match)
    return _changed(session, principal, response, changed)


@router.post(
    "/jobs/{job_id}/actions/clone",
    operation_id="cloneJob",
    status_code=201,
    response_model=JobOut,
)
@takes_bytes(JOB_BYTES)
def clone(
    session: SessionDep,
    reading: ReadingDep,
    settings: SettingsDep,
    principal: Submitter,
    finder: FinderDep,
    job_id: str,
    body: CloneBody,
    key: KeyHeader = None,
) -> Response:
    """Submit a job like this one, with some fields changed.

    Its external id, its deadline and the jobs that it follows stay behind. Secrets are not copied:
    give each again in `changes.run.secret_env`.
    """

    def prepare(before: Session) -> list[Candidate]:
        like = body_like(before, principal, get_job(before, principal, job_id), body.changes)
        return with_warnings(before, principal, checked_job(before, principal, like), finder)

    def answer(checked: list[Candidate]) -> Answer:
        (job,) = store_jobs(session, principal, checked, key=secret_key(settings))
        where = {"Location": f"/api/v1/jobs/{job.id}", "ETag": etag(job.version)}
        return Answer(201, show_job(session, principal, job), where)

    request = {"of": job_id, "changes": without_secrets(body.changes, settings)}
    once = Once(principal.user_id, "POST /jobs/actions/clone", key, request)
    return answer_prepared(reading, session, once, settings, prepare=prepare, answer=answer)


def _changed(session: Session, principal: Principal, response: Response, job: Job) -> JobOut:
    response.headers["ETag"] = etag(job.version)
    return show_job(session, principal, job)
