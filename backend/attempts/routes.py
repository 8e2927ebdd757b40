"""Routes of attempts: what agents report, and what users see of it."""

from __future__ import annotations

from pathlib import Path as FolderPath
from typing import Annotated

import anyio.to_thread
from fastapi import APIRouter, Depends, Path, Query
from fastapi.responses import JSONResponse, StreamingResponse
from sqlmodel import Session

from backend.accounts.identity import Principal, require
from backend.accounts.permissions import Permission
from backend.attempts.beliefs import show_belief
from backend.attempts.folders import cluster_folder
from backend.attempts.logs import kept_parts, open_log, read_part, read_whole
from backend.attempts.models import AttemptRow
from backend.attempts.refusals import ReportRoute
from backend.attempts.reports import take_report
from backend.attempts.repository import attempts_of, get_attempt, gradients_of, samples_of
from backend.attempts.resources import show_attempt, show_gradient, show_sample
from backend.attempts.tokens import ReportingAttempt
from backend.clusters.models import Cluster
from backend.jobs.repository import get_job
from backend.pagination import PageAsked
from backend.problems import NotFound
from backend.settings import Settings
from backend.web.bodies import JOB_BYTES, takes_bytes
from backend.web.dependencies import DatabaseDep, SessionDep, SettingsDep
from backend.web.strict_json import StrictRoute
from maat.api.attempts import (
    MAX_LOG_BYTES,
    AttemptOut,
    AttemptSort,
    GradientSampleOut,
    LogOut,
    ReportBody,
    ReportOut,
    StepSampleOut,
)
from maat.api.beliefs import BeliefOut
from maat.api.fields import Page
from maat.vocabulary import LARGEST_COUNT, LARGEST_INTEGER, MAX_GPUS, AttemptState

router = APIRouter(tags=["attempts"], route_class=StrictRoute)
reporting = APIRouter(tags=["attempts"], route_class=ReportRoute)

Reader = Annotated[Principal, Depends(require(Permission.JOBS_READ))]
AttemptNumber = Annotated[int, Path(ge=1, le=LARGEST_INTEGER, description="The attempt's number.")]
Rank = Annotated[int, Path(ge=0, lt=MAX_GPUS, description="The process's rank in the attempt.")]


@reporting.post("/attempts/{attempt_id}/reports", operation_id="report", response_model=ReportOut)
@takes_bytes(JOB_BYTES)
async def report(
    database: DatabaseDep, attempt_id: ReportingAttempt, body: ReportBody
) -> JSONResponse:
    """Report for an attempt, with its own token.

    A report that was accepted before is accepted again and changes nothing. 409 `stale-attempt`:
    the attempt is over, and its processes must end without saving.
    """

    def take() -> ReportOut:
        with database.session_scope() as session:
            return take_report(session, attempt_id, body)

    # Reports are most of what is asked: the whole transaction in one thread, and one answer that is
    # not checked again, take two thirds of the time that other routes take.
    return JSONResponse(await anyio.to_thread.run_sync(take))


@router.get("/jobs/{job_id}/attempts", operation_id="listJobAttempts")
def list_attempts(
    session: SessionDep,
    principal: Reader,
    job_id: str,
    asked: PageAsked,
    sort: Annotated[AttemptSort, Query(description="-number: newest first.")] = "number",
) -> Page[AttemptOut]:
    """The lives of the job's processes, oldest first. A job that is played has none."""
    job = get_job(session, principal, job_id)
    found = attempts_of(session, job.id, sort=sort, limit=asked.limit, cursor=asked.cursor)
    cluster = session.get_one(Cluster, job.cluster_id)
    return asked.linked(found).shown(lambda row: show_attempt(row, cluster))


@router.get("/jobs/{job_id}/attempts/{number}/logs/{rank}", operation_id="readJobLog")
def read_log(
    session: SessionDep,
    settings: SettingsDep,
    principal: Reader,
    job_id: str,
    number: AttemptNumber,
    rank: Rank,
    offset: Annotated[
        int, Query(ge=0, le=LARGEST_COUNT, description="In bytes; beyond the end: it.")
    ] = 0,
    limit: Annotated[int, Query(ge=4, le=MAX_LOG_BYTES, description="Bytes.")] = MAX_LOG_BYTES,
) -> LogOut:
    """What a rank has written, from an offset on. Ask again from `next_offset` until `ended`."""
    attempt = _attempt_with(session, principal, job_id, number, rank)
    with open_log(_folder(session, settings, attempt), attempt.id, rank) as file:
        return read_part(file, offset, limit, ended=attempt.state == AttemptState.ENDED)


@router.get(
    "/jobs/{job_id}/attempts/{number}/logs/{rank}/download",
    operation_id="downloadJobLog",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def download_log(
    session: SessionDep,
    settings: SettingsDep,
    principal: Reader,
    job_id: str,
    number: AttemptNumber,
    rank: Rank,
) -> StreamingResponse:
    """All that a rank has written so far, as a file."""
    attempt = _attempt_with(session, principal, job_id, number, rank)
    file = open_log(_folder(session, settings, attempt), attempt.id, rank)
    parts, name = kept_parts(file), f"{attempt.job_id}-attempt-{number}-rank-{rank}.log"
    headers = {
        "Content-Disposition": f'attachment; filename="{name}"',
        "Content-Length": str(sum(end - start for start, end in parts)),
    }
    return StreamingResponse(
        read_whole(file, parts), media_type="text/plain; charset=utf-8", headers=headers
    )


@router.get("/jobs/{job_id}/samples", operation_id="listJobSamples")
def list_samples(
    session: SessionDep,
    principal: Reader,
    job_id: str,
    asked: PageAsked,
) -> Page[StepSampleOut]:
    """The step times that were measured of the job, by configuration."""
    job = get_job(session, principal, job_id)
    found = asked.linked(samples_of(session, job.id, limit=asked.limit, cursor=asked.cursor))
    cluster = session.get_one(Cluster, job.cluster_id)
    return found.shown(lambda row: show_sample(row, cluster))


@router.get("/jobs/{job_id}/gradients", operation_id="listJobGradients")
def list_gradients(
    session: SessionDep,
    principal: Reader,
    job_id: str,
    asked: PageAsked,
) -> Page[GradientSampleOut]:
    """The gradient noise scale of the job over its training, oldest first; about the newest 500."""
    job = get_job(session, principal, job_id)
    found = asked.linked(gradients_of(session, job.id, limit=asked.limit, cursor=asked.cursor))
    cluster = session.get_one(Cluster, job.cluster_id)
    return found.shown(lambda row: show_gradient(row, cluster))


@router.get("/jobs/{job_id}/belief", operation_id="getJobBelief")
def get_belief(session: SessionDep, principal: Reader, job_id: str) -> BeliefOut:
    """What was learnt of the job: fitted step times by GPU type, the parts of a restart, profiles.

    Each with its error. Policies decide by it. Of a job that is played, no step is measured, and
    the restart is the catalog's.
    """
    return show_belief(session, get_job(session, principal, job_id))


def _folder(session: Session, settings: Settings, attempt: AttemptRow) -> FolderPath:
    return cluster_folder(settings, session.get_one(Cluster, attempt.cluster_id))


def _attempt_with(
    session: Session, principal: Principal, job_id: str, number: int, rank: int
) -> AttemptRow:
    """Return an attempt of a visible job that has this rank. Raises NotFound."""
    attempt = get_attempt(session, get_job(session, principal, job_id).id, number)
    if rank >= attempt.gpu_count:
        raise NotFound(f"Attempt {number} has {attempt.gpu_count} ranks, which count from 0.")
    return attempt
