"""Routes of forecasts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response
from sqlmodel import Session, col, select

from backend.accounts.identity import Principal, a_simulation, require
from backend.accounts.permissions import Permission
from backend.clusters.models import Cluster
from backend.clusters.repository import get_cluster
from backend.forecasts.calibration import calibration_of
from backend.forecasts.coming import held_by, what_is_coming
from backend.forecasts.interest import record_interest
from backend.forecasts.models import ClusterForecast, JobForecastRow, WhatIf
from backend.forecasts.resources import show_job_forecast, show_question
from backend.forecasts.service import (
    PreparedQuestion,
    get_question,
    prepare_question,
    store_question,
)
from backend.idempotency import Answer, KeyHeader, Once, answer_prepared
from backend.jobs.dependencies import held_forerunners
from backend.jobs.models import Job
from backend.jobs.repository import get_job
from backend.jobs.service import first_cluster
from backend.laboratory.budget import within_budget
from backend.moments import moment_of
from backend.operations.service import operations_of
from backend.pagination import PageAsked
from backend.sight import sight_of
from backend.tenancy import newest_owned
from backend.web.bodies import JOB_BYTES, takes_bytes
from backend.web.dependencies import QueueDep, ReadingDep, SessionDep, SettingsDep
from backend.web.strict_json import StrictRoute
from maat.api.fields import Page
from maat.api.forecasts import CalibrationOut, ForecastBody, ForecastOut, JobForecastOut
from maat.vocabulary import PromiseKind

router = APIRouter(tags=["forecasts"], route_class=StrictRoute)

JobReader = Annotated[Principal, Depends(require(Permission.JOBS_READ))]
Reader = Annotated[Principal, Depends(require(Permission.SIMULATIONS_READ))]
Runner = Annotated[Principal, Depends(require(Permission.SIMULATIONS_RUN))]


@router.get("/jobs/{job_id}/forecast", operation_id="getJobForecast")
def read_job_forecast(session: SessionDep, principal: JobReader, job_id: str) -> JobForecastOut:
    """When the job starts and ends, as of the last round that was forecast."""
    job = get_job(session, principal, job_id)
    cluster = session.get_one(Cluster, job.cluster_id)
    if job.finished_seconds is None:
        record_interest(session, [cluster.id])
    held = held_forerunners(session, job.id) if job.after else []
    if held:
        return show_job_forecast(job, None, cluster, held_by(held[0]))
    row = session.get(JobForecastRow, job.id)
    if row is not None:
        return show_job_forecast(job, row, cluster)
    of_cluster = session.get(ClusterForecast, cluster.id)
    coming = what_is_coming(job, cluster, of_cluster, moment_of(session).wall)
    return show_job_forecast(job, None, cluster, coming)


@router.post(
    "/forecasts",
    operation_id="askForecast",
    status_code=202,
    response_model=ForecastOut,
    dependencies=[Depends(a_simulation)],
)
@takes_bytes(JOB_BYTES)
def ask(
    session: SessionDep,
    reading: ReadingDep,
    settings: SettingsDep,
    queue: QueueDep,
    principal: Runner,
    body: ForecastBody,
    key: KeyHeader = None,
) -> Response:
    """Ask what would happen: if a job were submitted now, or the cluster were changed.

    Nothing is changed. Follow the operation in Location.
    """

    def answer(prepared: PreparedQuestion) -> Answer:
        asked = store_question(session, principal, prepared, queue)
        (shown,) = _shown(session, principal, [asked])
        location = f"/api/v1/operations/{asked.operation_id}"
        return Answer(202, shown, {"Location": location, "Retry-After": "1"})

    once = Once(principal.user_id, "POST /forecasts", key, body, _without_secrets)
    return answer_prepared(
        reading,
        session,
        once,
        settings,
        prepare=within_budget(
            principal, settings, lambda before: prepare_question(before, principal, body)
        ),
        answer=answer,
    )


@router.get("/forecasts", operation_id="listForecasts")
def list_questions(session: SessionDep, principal: Reader, asked: PageAsked) -> Page[ForecastOut]:
    """The questions of your tenant, newest first."""
    found = newest_owned(session, principal, WhatIf, asked)
    return Page(items=_shown(session, principal, found.items), next_cursor=found.next_cursor)


@router.get("/forecasts/{forecast_id}", operation_id="getForecast")
def read_question(session: SessionDep, principal: Reader, forecast_id: str) -> ForecastOut:
    """A question, with its answer once it is worked out."""
    return _shown(session, principal, [get_question(session, principal, forecast_id)])[0]


@router.get("/calibration", operation_id="getCalibration")
def read_calibration(
    session: SessionDep,
    principal: JobReader,
    cluster: Annotated[str | None, Query(max_length=200, description="Id or name.")] = None,
    kind: Annotated[PromiseKind | None, Query(description="Default: both.")] = None,
) -> CalibrationOut:
    """What promises were worth: promised starts and ends beside actual ones."""
    found = first_cluster(session) if cluster is None else get_cluster(session, cluster)
    record_interest(session, [found.id])
    return calibration_of(session, principal, found, kind)


def _shown(session: Session, principal: Principal, asked: Sequence[WhatIf]) -> list[ForecastOut]:
    operations = operations_of(session, asked)
    jobs = [row[0] for one in asked if one.result is not None for row in one.result["slowed"]]
    sight = sight_of(session, principal, jobs)
    mine = [job_id for job_id in jobs if sight.may_see(job_id)]
    names = dict(session.exec(select(Job.id, Job.name).where(col(Job.id).in_(mine))).all())
    return [
        show_question(
            one,
            operations[one.id],
            session.get_one(Cluster, one.cluster_id),
            names,
            sight,
        )
        for one in asked
    ]


def _without_secrets(request: dict[str, Any]) -> dict[str, Any]:
    """Return a question by what it is recognised: its answer does not depend on secrets."""
    job = request.get("job")
    if job is None or job.get("run") is None:
        return request
    run = {name: value for name, value in job["run"].items() if name != "secret_env"}
    return {**request, "job": {**job, "run": run}}
