"""Routes of jobs."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Response
from sqlmodel import Session

from backend.accounts.identity import Principal, require
from backend.accounts.permissions import Permission
from backend.attempts.locality import weighed_penalty
from backend.clusters.models import Cluster
from backend.clusters.repository import all_clusters, get_cluster, nodes_of
from backend.clusters.topology import capacity_by_type
from backend.commands.service import show_command, without_secrets
from backend.forecasts.repository import starts_late
from backend.idempotency import Answer, KeyHeader, Once, answer_prepared
from backend.jobs.blockers import blockers_of
from backend.jobs.candidates import Candidate
from backend.jobs.demo import demo_bodies
from backend.jobs.dependencies import held_forerunners, open_needs
from backend.jobs.dry_run import try_submission
from backend.jobs.explanation import explain, is_held_back, waited_for
from backend.jobs.finder import FinderDep
from backend.jobs.past_blockers import with_blockers
from backend.jobs.queue import place_if_waiting
from backend.jobs.remedies.permitting import permitted
from backend.jobs.repository import (
    FoundJobs,
    JobFilters,
    allocations_of,
    count_by_state,
    events_of,
    find_jobs,
    get_job,
    last_failure,
    last_setback,
)
from backend.jobs.resources import reason_sight, show_event, show_job, show_jobs
from backend.jobs.service import (
    checked_array,
    checked_batch,
    checked_job,
    first_cluster,
    store_jobs,
)
from backend.jobs.shared_now import with_sharing
from backend.jobs.spans import measured_of, span_before, timeline_of
from backend.jobs.warnings import with_warnings
from backend.pagination import PageAsked, Skip
from backend.secret_key import secret_key
from backend.web.bodies import BATCH_BYTES, JOB_BYTES, takes_bytes
from backend.web.conditional import etag
from backend.web.dependencies import ReadingDep, SessionDep, SettingsDep
from backend.web.strict_json import StrictRoute
from maat.api.commands import CommandOut
from maat.api.fields import Moment, Page
from maat.api.job_answers import (
    AllocationSpanOut,
    BatchItem,
    BatchOut,
    DryRunOut,
    ExplanationOut,
    JobEventOut,
    JobOut,
    JobPage,
)
from maat.api.jobs import ArrayBody, BatchBody, DemoBody, JobBody
from maat.vocabulary import LABEL_KEY, LABEL_VALUE, MOST_LABELS, JobState

router = APIRouter(tags=["jobs"], route_class=StrictRoute)

Reader = Annotated[Principal, Depends(require(Permission.JOBS_READ))]
Submitter = Annotated[Principal, Depends(require(Permission.JOBS_SUBMIT))]


Names = Annotated[list[str], Query(max_length=100)]
Sort = Literal[
    "submitted_at", "name", "model", "state", "progress", "gpu_hours", "restarts",
    "-submitted_at", "-name", "-model", "-state", "-progress", "-gpu_hours", "-restarts",
]  # fmt: skip


async def job_filters(
    cluster: Annotated[str | None, Query(max_length=200, description="Id or name.")] = None,
    state: Annotated[list[JobState], Query(max_length=20)] = [],  # noqa: B006  (FastAPI copies defaults)
    tenant: Names = [],  # noqa: B006
    owner: Annotated[str | None, Query(max_length=200)] = None,
    model: Names = [],  # noqa: B006
    gpu_type: Names = [],  # noqa: B006
    q: Annotated[
        str | None,
        Query(
            max_length=200,
            description="Part of the name or external id; or the id of a job or array.",
        ),
    ] = None,
    submitted_after: Annotated[Moment | None, Query()] = None,
    submitted_before: Annotated[Moment | None, Query()] = None,
    label: Annotated[
        list[Annotated[str, Query(pattern=f"^{LABEL_KEY}={LABEL_VALUE}$")]],
        Query(max_length=MOST_LABELS, description="`key=value`; of several a job has all."),
    ] = [],  # noqa: B006
    array: Annotated[str | None, Query(max_length=40, description="Id of an array.")] = None,
    flagged: Annotated[
        bool, Query(description="Only jobs with a flag that nobody has dismissed.")
    ] = False,
) -> JobFilters:
    return JobFilters(
        cluster,
        tuple(sorted(s.value for s in state)),
        tuple(tenant),
        owner,
        tuple(model),
        tuple(gpu_type),
        q,
        submitted_after,
        submitted_before,
        tuple(label),
        array,
        flagged,
    )


async def total_asked(
    count: Annotated[Literal["exact"] | None, Query(description="Ask for `total`.")] = None,
) -> bool:
    return count == "exact"


@router.get("/jobs", operation_id="listJobs")
def list_jobs(
    session: SessionDep,
    principal: Reader,
    asked: PageAsked,
    with_total: Annotated[bool, Depends(total_asked)],
    filters: Annotated[JobFilters, Depends(job_filters)],
    sort: Sort = "-submitted_at",
    skip: Skip = 0,
) -> JobPage:
    """The jobs that you may see, with counts by state.

    The counts cover all jobs that the filters match.
    """
    clusters = (
        all_clusters(session)
        if filters.cluster is None
        else [get_cluster(session, filters.cluster)]
    )
    wanted = FoundJobs.of(session, filters, principal, clusters)
    page = find_jobs(session, wanted, sort, limit=asked.limit, cursor=asked.cursor, skip=skip)
    found = asked.linked(page)
    counts = count_by_state(session, wanted)
    total = sum(counts.values()) if with_total else None
    return JobPage(
        items=show_jobs(session, principal, found.items),
        next_cursor=found.next_cursor,
        state_counts=counts,
        total=total,
    )


@router.post(
    "/jobs",
    operation_id="submitJob",
    status_code=201,
    response_model=JobOut,
    responses={200: {"model": DryRunOut, "description": "With `dry_run`: nothing was stored."}},
)
@takes_bytes(JOB_BYTES)
def create_job(
    session: SessionDep,
    reading: ReadingDep,
    settings: SettingsDep,
    principal: Submitter,
    finder: FinderDep,
    body: JobBody,
    dry_run: Annotated[bool, Query(description="Only say what would be made.")] = False,
    key: KeyHeader = None,
) -> Response:
    """Submit one job. The next round considers it.

    With `dry_run` it is only checked: the answer (200) says what would be made, on which GPU types
    it could run, and what the next round would give it. It uses no Idempotency-Key.
    """
    if dry_run:
        with reading() as before:
            return Answer(200, try_submission(before, principal, body, finder)).response()

    def answer(checked: list[Candidate]) -> Answer:
        (job,) = store_jobs(session, principal, checked, key=secret_key(settings))
        return Answer(
            201,
            show_job(session, principal, job, is_new=True),
            {"Location": f"/api/v1/jobs/{job.id}", "ETag": etag(job.version)},
        )

    hidden = partial(without_secrets, settings=settings)
    once = Once(principal.user_id, "POST /jobs", key, body, hidden)
    return answer_prepared(
        reading,
        session,
        once,
        settings,
        prepare=lambda before: with_warnings(
            before, principal, checked_job(before, principal, body), finder
        ),
        answer=answer,
    )


@router.post(
    "/jobs:batch",
    operation_id="submitJobs",
    status_code=201,
    response_model=BatchOut,
    responses={
        207: {
            "model": BatchOut,
            "description": "Some jobs of a `partial` batch could not be used: each says why.",
        }
    },
)
@takes_bytes(BATCH_BYTES)
def create_jobs(
    session: SessionDep,
    reading: ReadingDep,
    settings: SettingsDep,
    principal: Submitter,
    finder: FinderDep,
    body: BatchBody,
    key: KeyHeader = None,
) -> Response:
    """Submit up to 1000 jobs: all or none (`atomic`), or the usable ones (`partial`).

    A partial batch with unusable jobs is answered with 207.
    """

    def answer(checked: list[Candidate]) -> Answer:
        key = secret_key(settings)
        store_jobs(session, principal, checked, key=key, atomic=body.mode == "atomic")
        batch = _show_batch(session, principal, checked)
        return Answer(207 if batch["refused"] else 201, batch)

    def hidden(request: dict[str, Any]) -> dict[str, Any]:
        return {**request, "jobs": [without_secrets(job, settings) for job in request["jobs"]]}

    request = {"jobs": body.jobs, "mode": body.mode}
    once = Once(principal.user_id, "POST /jobs:batch", key, request, hidden)
    return answer_prepared(
        reading,
        session,
        once,
        settings,
        prepare=lambda before: with_warnings(
            before, principal, checked_batch(before, principal, body), finder
        ),
        answer=answer,
    )


@router.post("/jobs:array", operation_id="submitArray", status_code=201, response_model=BatchOut)
@takes_bytes(JOB_BYTES)
def create_array(
    session: SessionDep,
    reading: ReadingDep,
    settings: SettingsDep,
    principal: Submitter,
    finder: FinderDep,
    body: ArrayBody,
    key: KeyHeader = None,
) -> Response:
    """Submit one job up to 1000 times, with an index each: all or none.

    Their `array_id` finds them in the list and for actions on all of them.
    """

    def answer(checked: list[Candidate]) -> Answer:
        store_jobs(session, principal, checked, key=secret_key(settings))
        return Answer(201, _show_batch(session, principal, checked))

    def hidden(request: dict[str, Any]) -> dict[str, Any]:
        return {**request, "job": without_secrets(request["job"], settings)}

    once = Once(principal.user_id, "POST /jobs:array", key, body, hidden)
    return answer_prepared(
        reading,
        session,
        once,
        settings,
        prepare=lambda before: with_warnings(
            before, principal, checked_array(before, principal, body), finder
        ),
        answer=answer,
    )


@router.post("/jobs:demo", operation_id="addDemoJobs", status_code=201, response_model=BatchOut)
def add_demo_jobs(
    session: SessionDep,
    reading: ReadingDep,
    settings: SettingsDep,
    principal: Submitter,
    body: DemoBody,
    key: KeyHeader = None,
) -> Response:
    """Add jobs drawn from the catalog in the mix of a published trace.

    They have a quarter of the standard length.
    """

    def answer(checked: list[Candidate]) -> Answer:
        store_jobs(session, principal, checked, key=secret_key(settings))
        return Answer(201, _show_batch(session, principal, checked))

    once = Once(principal.user_id, "POST /jobs:demo", key, body)
    return answer_prepared(
        reading,
        session,
        once,
        settings,
        prepare=lambda before: _checked_demo(before, principal, body),
        answer=answer,
    )


@router.get("/jobs/{job_id}", operation_id="getJob")
def read_job(session: SessionDep, principal: Reader, job_id: str, response: Response) -> JobOut:
    job = get_job(session, principal, job_id)
    response.headers["ETag"] = etag(job.version)
    return show_job(session, principal, job)


@router.get("/jobs/{job_id}/command", operation_id="getJobCommand")
def read_command(session: SessionDep, principal: Reader, job_id: str) -> CommandOut:
    """What the job runs. Of its secrets, only the names are known."""
    return show_command(session, get_job(session, principal, job_id).id)


@router.get("/jobs/{job_id}/allocations", operation_id="listJobAllocations")
def list_allocations(
    session: SessionDep,
    principal: Reader,
    job_id: str,
    asked: PageAsked,
) -> Page[AllocationSpanOut]:
    """The allocations of the job over time, oldest first."""
    job = get_job(session, principal, job_id)
    found = asked.linked(allocations_of(session, job.id, limit=asked.limit, cursor=asked.cursor))
    before = span_before(session, found.items[0]) if found.items else None
    shown = timeline_of(session, job).show(found.items, before=before)
    return Page(items=shown, next_cursor=found.next_cursor)


@router.get("/jobs/{job_id}/events", operation_id="listJobEvents")
def list_events(
    session: SessionDep,
    principal: Reader,
    job_id: str,
    asked: PageAsked,
) -> Page[JobEventOut]:
    """The events of the job, oldest first."""
    job = get_job(session, principal, job_id)
    found = asked.linked(events_of(session, job.id, limit=asked.limit, cursor=asked.cursor))
    cluster = session.get_one(Cluster, job.cluster_id)
    return found.shown(lambda event: show_event(event, cluster))


@router.get("/jobs/{job_id}/explanation", operation_id="explainJob")
def read_explanation(
    session: SessionDep, finder: FinderDep, principal: Reader, job_id: str
) -> ExplanationOut:
    """Why the job got its allocation in the latest round.

    Also lists changes to its request with which the next round would start it.
    """
    job = get_job(session, principal, job_id)
    cluster = session.get_one(Cluster, job.cluster_id)
    remedies = finder.remedies_of(session, job, next_round=cluster.next_round_number)
    follows = bool(job.after) and job.finished_seconds is None
    held = held_forerunners(session, job.id) if follows else []
    explained = explain(
        job,
        reason_sight(session, principal, job),
        remedies,
        waited_for=waited_for(session, principal, job),
        failure=last_failure(session, job.id) if job.state == JobState.FAILED else None,
        setback=last_setback(session, job.id) if is_held_back(job) else None,
        needs=open_needs(session, job.id) if follows else (),
        held=held,
        paused=cluster.paused,
        starts_late=starts_late(session, job.id),
        queue=place_if_waiting(session, job),
        measured=measured_of(session, job),
        blockers=blockers_of(session, principal, job),
        locality=weighed_penalty(session, cluster, job),
    )
    may = permitted(principal, job, explained["remedies"], others=held)
    waited = with_blockers(session, principal, job, explained["waited"])
    primary = with_sharing(session, principal, job, cluster, explained["primary"])
    return ExplanationOut(
        {
            **explained,
            "primary": primary,
            "reasons": [primary, *explained["reasons"][1:]],
            "remedies": may,
            "waited": waited,
        }
    )


def _checked_demo(session: Session, principal: Principal, body: DemoBody) -> list[Candidate]:
    cluster = (
        first_cluster(session) if body.cluster_id is None else get_cluster(session, body.cluster_id)
    )
    capacity = capacity_by_type(nodes_of(session, cluster.id), usable_only=False)
    bodies = demo_bodies(body.count, seed=body.seed, cluster_id=cluster.id, capacity=capacity)
    return checked_batch(session, principal, BatchBody(jobs=bodies))


def _show_batch(session: SessionDep, principal: Principal, candidates: list[Candidate]) -> BatchOut:
    jobs = [candidate.job for candidate in candidates if candidate.job is not None]
    shown = {job["id"]: job for job in show_jobs(session, principal, jobs, are_new=True)}
    items = [_show_candidate(candidate, shown) for candidate in candidates]
    return BatchOut(items=items, created=len(shown), refused=len(items) - len(shown))


def _show_candidate(candidate: Candidate, shown: dict[str, JobOut]) -> BatchItem:
    errors = [error.as_json() for error in candidate.errors]
    if candidate.conflict is not None:
        errors.append(
            {
                "pointer": "/external_id",
                "field": "external_id",
                "code": "taken",
                "message": candidate.conflict,
            }
        )
    job = None if candidate.job is None else shown[candidate.job.id]
    return BatchItem(index=candidate.index, status=candidate.status, job=job, errors=errors)
