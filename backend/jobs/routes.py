"""Routes of jobs."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request, Response

from backend.accounts.identity import Principal, require
from backend.accounts.permissions import Permission
from backend.clusters.models import Cluster
from backend.clusters.repository import all_clusters, get_cluster, nodes_of
from backend.clusters.topology import capacity_by_type
from backend.idempotency import Answer, KeyHeader, Once, answer_once
from backend.jobs.demo import demo_bodies
from backend.jobs.explanation import explain
from backend.jobs.repository import (
    JobFilters,
    allocations_of,
    count_by_state,
    events_of,
    find_jobs,
    get_job,
    job_order,
    job_predicate,
)
from backend.jobs.resources import show_event, show_job, show_jobs, show_span
from backend.jobs.schemas import (
    AllocationSpanOut,
    BatchBody,
    BatchItem,
    BatchOut,
    DemoBody,
    ExplanationOut,
    JobBody,
    JobEventOut,
    JobOut,
    JobPage,
)
from backend.jobs.service import Candidate, first_cluster, request_cancel, submit_batch, submit_job
from backend.pagination import Cursor, Limit, Page, link_next
from backend.web.conditional import etag
from backend.web.dependencies import SessionDep, SettingsDep
from backend.web.fields import Moment
from backend.web.strict_json import StrictRoute
from maat.scheduling.events import JobState

router = APIRouter(tags=["jobs"], route_class=StrictRoute)

Reader = Annotated[Principal, Depends(require(Permission.JOBS_READ))]
Submitter = Annotated[Principal, Depends(require(Permission.JOBS_SUBMIT))]
Canceller = Annotated[Principal, Depends(require(Permission.JOBS_CANCEL))]

Names = Annotated[list[str], Query(max_length=100)]
Sort = Literal[
    "submitted_at", "name", "model", "state", "progress", "gpu_hours", "restarts",
    "-submitted_at", "-name", "-model", "-state", "-progress", "-gpu_hours", "-restarts",
]  # fmt: skip


def job_filters(
    cluster: Annotated[str | None, Query(max_length=200, description="Id or name.")] = None,
    state: Annotated[list[JobState], Query(max_length=20)] = [],  # noqa: B006  (FastAPI copies defaults)
    tenant: Names = [],  # noqa: B006
    owner: Annotated[str | None, Query(max_length=200)] = None,
    model: Names = [],  # noqa: B006
    gpu_type: Names = [],  # noqa: B006
    q: Annotated[str | None, Query(max_length=200, description="Part of the name or external id, or the whole id.")] = None,
    submitted_after: Annotated[Moment | None, Query()] = None,
) -> JobFilters:
    states = tuple(sorted(s.value for s in state))
    return JobFilters(cluster, states, tuple(tenant), owner, tuple(model), tuple(gpu_type), q, submitted_after)


@router.get("/jobs", operation_id="listJobs")
def list_jobs(
    request: Request,
    response: Response,
    session: SessionDep,
    principal: Reader,
    filters: Annotated[JobFilters, Depends(job_filters)],
    sort: Sort = "-submitted_at",
    limit: Limit = 50,
    cursor: Cursor = None,
    count: Annotated[Literal["exact"] | None, Query(description="Ask for `total`.")] = None,
) -> JobPage:
    """Jobs that you may see, with counts by state of all that the filters match."""
    clusters = all_clusters(session) if filters.cluster is None else [get_cluster(session, filters.cluster)]
    predicate = job_predicate(filters, principal, clusters)
    described = {**vars(filters), "sort": sort, "for": "all" if principal.sees_all_tenants else principal.tenant_id}
    found = find_jobs(session, predicate, order=job_order(sort, clusters), filters=described, limit=limit, cursor=cursor)
    counts = count_by_state(session, predicate)
    link_next(request, response, found.next_cursor)
    total = sum(counts.values()) if count == "exact" else None
    return JobPage(items=show_jobs(session, found.items), next_cursor=found.next_cursor, state_counts=counts, total=total)


@router.post("/jobs", operation_id="submitJob", status_code=201, response_model=JobOut)
def create_job(session: SessionDep, settings: SettingsDep, principal: Submitter, body: JobBody, key: KeyHeader = None) -> Response:
    """Submit one job. The next round considers it."""

    def answer() -> Answer:
        job = submit_job(session, principal, body)
        return Answer(201, show_job(session, job), {"Location": f"/api/v1/jobs/{job.id}", "ETag": etag(job.version)})

    return answer_once(session, Once(principal.user_id, "POST /jobs", key, body.model_dump()), settings, answer)


@router.post("/jobs:batch", operation_id="submitJobs", status_code=201, response_model=BatchOut)
def create_jobs(session: SessionDep, settings: SettingsDep, principal: Submitter, body: BatchBody, key: KeyHeader = None) -> Response:
    """Submit up to 1000 jobs: all or none (`atomic`), or those that can be used (`partial`, 207 where some cannot)."""

    def answer() -> Answer:
        batch = _show_batch(session, submit_batch(session, principal, body))
        return Answer(207 if batch.refused else 201, batch)

    request = {"jobs": body.jobs, "mode": body.mode}
    return answer_once(session, Once(principal.user_id, "POST /jobs:batch", key, request), settings, answer)


@router.post("/jobs:demo", operation_id="addDemoJobs", status_code=201)
def add_demo_jobs(session: SessionDep, principal: Submitter, body: DemoBody) -> BatchOut:
    """Add jobs drawn from the catalog in the mix of a published trace, a quarter of their standard length."""
    cluster = first_cluster(session) if body.cluster_id is None else get_cluster(session, body.cluster_id)
    capacity = capacity_by_type(nodes_of(session, cluster.id), usable_only=False)
    bodies = demo_bodies(body.count, seed=body.seed, cluster_id=cluster.id, capacity=capacity)
    return _show_batch(session, submit_batch(session, principal, BatchBody(jobs=bodies)))


@router.get("/jobs/{job_id}", operation_id="getJob")
def read_job(session: SessionDep, principal: Reader, job_id: str, response: Response) -> JobOut:
    job = get_job(session, principal, job_id)
    response.headers["ETag"] = etag(job.version)
    return show_job(session, job)


@router.get("/jobs/{job_id}/allocations", operation_id="listJobAllocations")
def list_allocations(
    request: Request, response: Response, session: SessionDep, principal: Reader, job_id: str, limit: Limit = 50, cursor: Cursor = None
) -> Page[AllocationSpanOut]:
    """What it held when, oldest first."""
    job = get_job(session, principal, job_id)
    found = allocations_of(session, job.id, limit=limit, cursor=cursor)
    link_next(request, response, found.next_cursor)
    cluster = session.get_one(Cluster, job.cluster_id)
    return found.shown(lambda span: show_span(span, cluster))


@router.get("/jobs/{job_id}/events", operation_id="listJobEvents")
def list_events(
    request: Request, response: Response, session: SessionDep, principal: Reader, job_id: str, limit: Limit = 50, cursor: Cursor = None
) -> Page[JobEventOut]:
    """What happened to it, oldest first."""
    job = get_job(session, principal, job_id)
    found = events_of(session, job.id, limit=limit, cursor=cursor)
    link_next(request, response, found.next_cursor)
    cluster = session.get_one(Cluster, job.cluster_id)
    return found.shown(lambda event: show_event(event, cluster))


@router.get("/jobs/{job_id}/explanation", operation_id="explainJob")
def read_explanation(session: SessionDep, principal: Reader, job_id: str) -> ExplanationOut:
    """Why it got what it got in the latest round, and what would change that."""
    return explain(get_job(session, principal, job_id))


@router.post("/jobs/{job_id}/actions/cancel", operation_id="cancelJob")
def cancel_job(session: SessionDep, principal: Canceller, job_id: str) -> JobOut:
    """Ask for its end. `cancel_requested` is true at once, the state follows with the next round."""
    return show_job(session, request_cancel(session, principal, job_id))


def _show_batch(session: SessionDep, candidates: list[Candidate]) -> BatchOut:
    jobs = [candidate.job for candidate in candidates if candidate.job is not None]
    shown = {job.id: job for job in show_jobs(session, jobs)}
    items = [_show_candidate(candidate, shown) for candidate in candidates]
    return BatchOut(items=items, created=len(shown), refused=len(items) - len(shown))


def _show_candidate(candidate: Candidate, shown: dict[str, JobOut]) -> BatchItem:
    errors = [error.as_json() for error in candidate.errors]
    if candidate.conflict is not None:
        errors.append({"pointer": "/external_id", "field": "external_id", "code": "taken", "message": candidate.conflict})
    job = None if candidate.job is None else shown[candidate.job.id]
    return BatchItem(index=candidate.index, status=candidate.status, job=job, errors=errors)
