"""Routes of fairness: rho of ended jobs, and shares of the tenants."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from sqlmodel import Session

from backend.accounts.identity import Principal, require
from backend.accounts.permissions import Permission
from backend.clusters.models import Cluster
from backend.fairness import service
from backend.fairness.ended_reading import EndedJobs
from backend.fairness.repository import ended_between, worst_first
from backend.fairness.requests import (
    check_either,
    fairness_row,
    in_period,
    of_jobs,
    request_again,
    skip,
)
from backend.fairness.resources import show_fairness
from backend.fairness.share_service import shares
from backend.idempotency import Answer, KeyHeader, Once, answer_once
from backend.operations.resources import show_operation
from backend.pagination import PageAsked
from backend.periods import Period
from backend.usage.routes import period_of_request, reported_cluster
from backend.web.dependencies import SessionDep, SettingsDep
from backend.web.strict_json import StrictRoute
from maat.api.fairness import (
    FEW_POINTS,
    FEW_TENANTS,
    MOST_POINTS,
    MOST_TENANTS,
    FairnessOut,
    JobFairnessOut,
    RecomputeBody,
    SharesOut,
)
from maat.api.fields import Moment, Page
from maat.api.operations import OperationOut
from maat.api.periods import PeriodName

router = APIRouter(tags=["fairness"], route_class=StrictRoute)

Reader = Annotated[Principal, Depends(require(Permission.REPORTS_READ))]
Operator = Annotated[Principal, Depends(require(Permission.CLUSTERS_WRITE))]
AskedCluster = Annotated[
    str | None,
    Query(max_length=200, description="Id or name; default: the first cluster."),
]
AskedName = Annotated[PeriodName | None, Query(description="Default: this-week.")]
From = Annotated[Moment | None, Query(alias="from", description="Instead of a named period.")]
To = Annotated[Moment | None, Query(description="Default: now, in cluster time.")]
AskedMost = Annotated[
    int,
    Query(ge=1, le=MOST_TENANTS, description="Tenants with a row of their own: the largest ones."),
]


@router.get("/fairness", operation_id="getFairness")
def read_fairness(
    session: SessionDep,
    principal: Reader,
    cluster: AskedCluster = None,
    period: AskedName = None,
    start: From = None,
    to: To = None,
    points: Annotated[
        int, Query(ge=0, le=MOST_POINTS, description="Most points of a distribution.")
    ] = FEW_POINTS,
    most: AskedMost = FEW_TENANTS,
) -> FairnessOut:
    """rho of the jobs that ended in a period: its distribution by tenant."""
    ended = EndedJobs(session, *_asked(session, cluster, period, start, to))
    return service.fairness(ended, principal, points=points, most=most)


@router.get("/fairness/worst", operation_id="listWorstFairness")
def list_worst(
    session: SessionDep,
    principal: Reader,
    asked: PageAsked,
    cluster: AskedCluster = None,
    period: AskedName = None,
    start: From = None,
    to: To = None,
) -> Page[JobFairnessOut]:
    """The jobs of the largest rho, and how their lives were spent. Your own tenant's."""
    found_cluster, wanted = _asked(session, cluster, period, start, to)
    begin, end = wanted.seconds(found_cluster)
    found = asked.linked(
        worst_first(
            session,
            principal,
            *ended_between(found_cluster.id, begin, end),
            # By name: what ends the present week moves while its pages are read.
            filters={"cluster": found_cluster.id, "period": wanted.name or [begin, end]},
            limit=asked.limit,
            cursor=asked.cursor,
        )
    )
    items = show_fairness(session, found_cluster, found.items)
    return Page(items=items, next_cursor=found.next_cursor)


@router.get("/fairness/shares", operation_id="getShares")
def read_shares(
    session: SessionDep,
    principal: Reader,
    cluster: AskedCluster = None,
    period: AskedName = None,
    start: From = None,
    to: To = None,
    points: Annotated[int, Query(ge=2, le=MOST_POINTS, description="Most spans.")] = FEW_POINTS,
    most: AskedMost = FEW_TENANTS,
) -> SharesOut:
    """Shares of the GPUs that tenants deserved and held over a period, and Jain's index."""
    found, asked = _asked(session, cluster, period, start, to)
    return shares(session, principal, cluster=found, period=asked, points=points, most=most)


@router.post(
    "/fairness/actions/recompute",
    operation_id="recomputeFairness",
    status_code=202,
    response_model=OperationOut,
)
def recompute(
    session: SessionDep,
    settings: SettingsDep,
    principal: Operator,
    body: RecomputeBody,
    key: KeyHeader = None,
) -> Response:
    """Work rho out again by the present formula. Each job keeps its rho until it has the new one.

    Follow the operation in Location; cancelling it leaves what is not begun as it was.
    """

    check_either(body)

    def answer() -> Answer:
        cluster, period = _asked(session, body.cluster, body.period, body.from_, body.to)
        wanted = (
            in_period(cluster.id, *period.seconds(cluster))
            if body.job_ids is None
            else of_jobs(session, cluster.id, body.job_ids)
        )
        operation = request_again(session, principal, body, wanted)
        location = {"Location": f"/api/v1/operations/{operation.id}", "Retry-After": "1"}
        return Answer(202, show_operation(operation), location)

    once = Once(principal.user_id, "POST /fairness/actions/recompute", key, body)
    return answer_once(session, once, settings, answer)


@router.get("/jobs/{job_id}/fairness", operation_id="getJobFairness")
def read_job_fairness(session: SessionDep, principal: Reader, job_id: str) -> JobFairnessOut:
    """rho of a job that has ended, or why it has none."""
    row = fairness_row(session, principal, job_id)
    return show_fairness(session, session.get_one(Cluster, row.cluster_id), [row])[0]


@router.post("/jobs/{job_id}/fairness/actions/skip", operation_id="skipJobFairness")
def skip_job_fairness(session: SessionDep, principal: Operator, job_id: str) -> JobFairnessOut:
    """Say that rho of a job need not be worked out. A computation in progress ends soon."""
    row = skip(session, principal, job_id)
    return show_fairness(session, session.get_one(Cluster, row.cluster_id), [row])[0]


def _asked(
    session: Session,
    named: str | None,
    name: PeriodName | None,
    start: datetime | None,
    end: datetime | None,
) -> tuple[Cluster, Period]:
    cluster = reported_cluster(session, named)
    return cluster, period_of_request(session, cluster, name, start, end)
