"""Submits jobs. Commits nothing.

admission.py decides what may be submitted; the worker runs the jobs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import sqlalchemy as sa
from pydantic import ValidationError
from sqlmodel import Session

from backend.accounts.identity import Principal
from backend.accounts.permissions import Permission
from backend.audit.changes import Change, actor_of, record
from backend.clocktime import cluster_seconds, seconds_at
from backend.clusters.models import Cluster
from backend.clusters.repository import all_clusters, all_gpus_of, get_cluster
from backend.commands.service import store_commands
from backend.ids import new_id
from backend.jobs.admission import objections
from backend.jobs.candidates import Candidate
from backend.jobs.deadlines import objection_to
from backend.jobs.dependencies import check_dependencies, refuse_followers, rows_of_needs
from backend.jobs.models import Job, JobDependency, JobEvent
from backend.jobs.permits import permit_priority, permit_weight
from backend.jobs.repository import taken_external_ids
from backend.moments import moment_of
from backend.problems import Conflict, FieldError, Forbidden, Invalid, NotFound
from backend.quotas.repository import ceilings_of
from backend.secret_key import SecretKey
from backend.validation_errors import field_error
from maat.api.jobs import ArrayBody, BatchBody, JobBody
from maat.models.catalog import CatalogModel, load_catalog
from maat.scheduling.events import EventKind
from maat.scheduling.job import UNKNOWN_WORK
from maat.vocabulary import MAX_TEXT, JobState

_COLUMNS = tuple(Job.model_fields)
_JOBS, _EVENTS, _DEPENDENCIES = (
    sa.insert(table).inline() for table in (Job, JobEvent, JobDependency)
)
_MOST_ERRORS = 100
_MOST_ERRORS_OF_ONE = 20
_MOST_ERRORS_OF_BATCH = 5000


def checked_job(session: Session, principal: Principal, body: JobBody) -> list[Candidate]:
    """Check a job.

    Raises Invalid naming every unusable field, Conflict if its external id is taken.
    """
    candidate = Candidate(0, body)
    Submission(session, principal).check([candidate])
    if candidate.errors:
        raise Invalid(_detail(candidate.errors), errors=candidate.errors)
    if candidate.conflict is not None:
        raise Conflict(candidate.conflict)
    return [candidate]


def submit_unless_known(session: Session, principal: Principal, body: JobBody) -> Job | None:
    """Submit a job with an external id; return None if it exists or could never run."""
    candidate = Candidate(0, body)
    Submission(session, principal).check([candidate])
    return _store(session, principal, [candidate], None)[0] if candidate.usable else None


def checked_batch(session: Session, principal: Principal, body: BatchBody) -> list[Candidate]:
    """Check every job of a batch and record its errors.

    An atomic batch raises Invalid or Conflict if one job cannot be used.
    """
    most = min(_MOST_ERRORS_OF_BATCH // len(body.jobs), _MOST_ERRORS_OF_ONE)
    candidates = [_parsed(index, raw, most_errors=most) for index, raw in enumerate(body.jobs)]
    Submission(session, principal).check(candidates)
    if body.mode == "atomic":
        _refuse_all(candidates)
    return candidates


def checked_array(session: Session, principal: Principal, body: ArrayBody) -> list[Candidate]:
    """Check an array's jobs, each of which is the same but for its name and its external id.

    Raises what `checked_job` raises.
    """
    array_id, one = new_id("arr"), body.job
    _check_room(one, max(body.places))
    first = Candidate(0, one.model_copy())
    submission = Submission(session, principal)
    submission.check([first])
    if first.errors:
        raise Invalid(_detail(first.errors), errors=[_in_array(error) for error in first.errors])
    candidates = [
        Candidate(place, _numbered(one, index), needs=first.needs, array=(array_id, index))
        for place, index in enumerate(body.places)
    ]
    for candidate in candidates:
        if candidate.body is not None and first.body is not None:
            candidate.body.cluster_id = first.body.cluster_id
    submission.check_external_ids(candidates)
    _refuse_all(candidates)
    return candidates


def _check_room(job: JobBody, index: int) -> None:
    """Raises Invalid if an index makes the name or the external id of a job too long."""
    errors = []
    for field, words in (("name", "name"), ("external_id", "external id")):
        longest = len(f"{getattr(job, field) or ''}[{index}]")
        if longest > MAX_TEXT:
            message = f"The {words} has no room for an index: with it, it has {longest} characters."
            remedy = f"Shorten it: {MAX_TEXT} are allowed."
            errors.append(FieldError(f"/job/{field}", "too_long", message, remedy))
    if errors:
        raise Invalid(errors[0].message, errors=errors)


def _numbered(body: JobBody, index: int) -> JobBody:
    external = None if body.external_id is None else f"{body.external_id}[{index}]"
    return body.model_copy(update={"name": f"{body.name}[{index}]", "external_id": external})


def _in_array(error: FieldError) -> FieldError:
    return FieldError(f"/job{error.pointer}", error.code, error.message, error.remedy, error.value)


def store_jobs(
    session: Session,
    principal: Principal,
    candidates: Sequence[Candidate],
    *,
    key: SecretKey,
    atomic: bool = True,
) -> list[Job]:
    """Store the usable jobs; `key` encrypts the secrets of their commands.

    An external id may have been taken since the check; then an atomic batch raises Conflict.
    """
    Submission(session, principal).check_external_ids(
        [candidate for candidate in candidates if candidate.usable]
    )
    refuse_followers(candidates)
    if atomic:
        _refuse_all(candidates)
    usable = [candidate for candidate in candidates if candidate.usable]
    jobs = _store(session, principal, usable, key)
    if jobs:
        _record_submission(session, principal, jobs)
    return jobs


def _record_submission(session: Session, principal: Principal, jobs: Sequence[Job]) -> None:
    """Write one record per request: the rows of the jobs say who owns each of them."""
    first = jobs[0]
    after: dict[str, object] = {
        "name": first.name,
        "cluster_id": first.cluster_id,
        "model": first.model,
    }
    if len(jobs) > 1:
        after |= {"jobs": len(jobs), "last": jobs[-1].id}
    action = "submit job" if len(jobs) == 1 else "submit jobs"
    actor = actor_of(principal)
    record(session, Change(actor, action, first.id, {}, after, first.tenant_id))


def _refuse_all(candidates: Sequence[Candidate]) -> None:
    refused = [candidate for candidate in candidates if not candidate.usable]
    if not refused:
        return
    found = (_below(error, candidate.index) for candidate in refused for error in candidate.errors)
    errors = list(islice(found, _MOST_ERRORS))
    if not errors:
        which = f"Job {refused[0].index}: " if len(candidates) > 1 else ""
        raise Conflict(f"{which}{refused[0].conflict}")
    raise Invalid(
        f"{len(refused)} of {len(candidates)} jobs cannot be used; none was stored. "
        f"{_detail(errors)}",
        errors=errors,
    )


class Submission:
    """Checks jobs against catalog, clusters and each other. Reads each cluster once."""

    def __init__(self, session: Session, principal: Principal) -> None:
        self._session, self._principal = session, principal
        self._models: Mapping[str, CatalogModel] = load_catalog()
        self._capacity: dict[str, Mapping[str, int]] = {}
        self._ceilings: dict[str, Mapping[str, int]] = {}
        self._clusters: dict[str | None, Cluster] = {}

    def check(self, candidates: Sequence[Candidate]) -> None:
        if any(candidate.body is not None and candidate.body.run for candidate in candidates):
            self._permit_commands()
        for candidate in candidates:
            if candidate.body is not None:
                permit_priority(self._principal, candidate.body.priority)
                permit_weight(self._principal, candidate.body.weight)
                self._check_body(candidate, candidate.body)
        self.check_external_ids(
            [candidate for candidate in candidates if candidate.body is not None]
        )
        check_dependencies(self._session, self._principal.tenant_id, candidates)

    def _permit_commands(self) -> None:
        if Permission.JOBS_RUN_COMMANDS not in self._principal.permissions:
            raise Forbidden(
                "You may not run commands here. MAAT_ALLOW_COMMANDS=true allows them to "
                "administrators, and with MAAT_IMPLICIT_ADMIN=false to all who may submit jobs: "
                "without it, whatever runs on this machine may be the administrator.",
                remedy="Ask the operator.",
            )

    def _check_body(self, candidate: Candidate, body: JobBody) -> None:
        try:
            cluster = self._cluster(body.cluster_id)
        except NotFound as error:
            known = (
                ", ".join(c.name for c in all_clusters(self._session))
                or "none yet: create one (maat create-cluster, or POST /api/v1/clusters)"
            )
            remedy = f"Use the id or name of a cluster: {known}."
            candidate.errors.append(
                FieldError("/cluster_id", "unknown_cluster", error.detail, remedy, body.cluster_id)
            )
            return
        body.cluster_id = cluster.id
        candidate.errors += objections(
            body,
            models=self._models,
            capacity=self._capacity[cluster.id],
            executor=cluster.executor,
            ceilings=self._ceilings[cluster.id],
        )
        if body.deadline is not None:
            wrong = objection_to(body.deadline, cluster, moment_of(self._session))
            candidate.errors += [wrong] if wrong else []

    def _cluster(self, named: str | None) -> Cluster:
        if named not in self._clusters:
            cluster = (
                first_cluster(self._session) if named is None else get_cluster(self._session, named)
            )
            self._clusters[named] = cluster
            self._capacity[cluster.id] = all_gpus_of(self._session, cluster.id)
            self._ceilings[cluster.id] = ceilings_of(
                self._session, cluster.id, self._principal.tenant_id
            )
        return self._clusters[named]

    def check_external_ids(self, candidates: Sequence[Candidate]) -> None:
        wanted = [
            c.body.external_id
            for c in candidates
            if c.body is not None and c.body.external_id is not None
        ]
        taken = (
            taken_external_ids(self._session, self._principal.tenant_id, wanted) if wanted else {}
        )
        for candidate in candidates:
            external = candidate.body.external_id if candidate.body is not None else None
            if external is None:
                continue
            if external in taken:
                candidate.conflict = (
                    f"The external id {external!r} belongs to job {taken[external]}."
                )
            taken.setdefault(external, f"{candidate.index} of this request")


def first_cluster(session: Session) -> Cluster:
    clusters = all_clusters(session)
    if not clusters:
        raise NotFound("There is no cluster yet.")
    return clusters[0]


def _store(
    session: Session, principal: Principal, candidates: Sequence[Candidate], key: SecretKey | None
) -> list[Job]:
    now = moment_of(session)
    ids = {candidate.index: new_id("job") for candidate in candidates}
    jobs = []
    clusters: dict[str, Cluster] = {}
    for candidate in candidates:
        body = candidate.body
        if body is None or body.cluster_id is None:
            raise ValueError("only what `check` found usable can be stored")
        if body.cluster_id not in clusters:
            clusters[body.cluster_id] = get_cluster(session, body.cluster_id)
        cluster = candidate.cluster = clusters[body.cluster_id]
        array_id, array_index = candidate.array or (None, None)
        candidate.job = row_of(
            body,
            principal,
            cluster,
            submitted_seconds=cluster_seconds(cluster, now),
            id=ids[candidate.index],
            created_at=now.wall,
            after=[ids[need] if isinstance(need, int) else need for need in candidate.needs],
            array_id=array_id,
            array_index=array_index,
            **_known_reason(candidate),
        )
        jobs.append(candidate.job)
    _insert(session, _JOBS, [_columns(job) for job in jobs])
    _insert(session, _EVENTS, [_submitted(job) for job in jobs])
    _insert(session, _DEPENDENCIES, [row for job in jobs for row in rows_of_needs(job)])
    runs = [(c.job.id, c.body.run) for c in candidates if c.job and c.body and c.body.run]
    if runs:
        if key is None:
            raise ValueError("commands may have secrets, which need a key")
        store_commands(session, runs, key)
    return jobs


def _known_reason(candidate: Candidate) -> dict[str, Any]:
    """Return the columns of the reason that rounds will give; without one, the defaults stay."""
    why = candidate.never
    if why is None:
        return {}
    return {"reason_code": why.primary.value, "reason_evidence": dict(why.evidence)}


def _insert(session: Session, into: sa.Insert, rows: list[dict[str, Any]]) -> None:
    if rows:  # one row is no list: for lists PostgreSQL's driver takes another, longer way
        session.connection().execute(into, rows if len(rows) > 1 else rows[0])


def _columns(job: Job) -> dict[str, Any]:
    values = vars(job)
    return {name: values[name] for name in _COLUMNS}


def row_of(
    body: JobBody,
    principal: Principal,
    cluster: Cluster,
    *,
    submitted_seconds: float,
    **columns: Any,
) -> Job:
    """Return the row of a checked job, for statements: no session can take it.

    `columns`: others than those that follow from the rest.
    """
    given: dict[str, Any] = {
        **body.model_dump(exclude={"run", "after", "deadline"}),
        "deadline_seconds": None if body.deadline is None else seconds_at(cluster, body.deadline),
        "owner_id": principal.user_id,
        "tenant_id": principal.tenant_id,
        "state": JobState.SUBMITTED.value,
        "submitted_seconds": submitted_seconds,
        "remaining_work": _work_of(body),
    }
    # A mapped object, which follows what is set on it, takes a sixth of the time of a submission.
    return Job.model_construct(**given, **columns)


def _work_of(body: JobBody) -> float:
    if body.run is not None:
        return body.run.total_samples or UNKNOWN_WORK
    return load_catalog()[body.model].work * body.work_scale


def _submitted(job: Job) -> dict[str, object]:
    return {
        "job_id": job.id,
        "cluster_id": job.cluster_id,
        "cluster_seconds": job.submitted_seconds,
        "kind": EventKind.STATE.value,
        "state": JobState.SUBMITTED.value,
        "data": {},
    }


def _parsed(index: int, raw: Any, *, most_errors: int) -> Candidate:
    try:
        return Candidate(index, JobBody.model_validate(raw))
    except ValidationError as error:
        reported = islice(error.errors(include_url=False), most_errors)
        return Candidate(
            index,
            errors=[
                field_error({**found, "loc": ("body", *found["loc"])}, JobBody)
                for found in reported
            ],
        )


def _below(error: FieldError, index: int) -> FieldError:
    return FieldError(
        f"/jobs/{index}{error.pointer}", error.code, error.message, error.remedy, error.value, index
    )


def _detail(errors: Sequence[FieldError]) -> str:
    return " ".join(f"{error.pointer}: {error.message} {error.remedy}" for error in errors[:3])
