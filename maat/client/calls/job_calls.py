"""Calls about jobs: submission, life, attempts, logs and reasons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict, Unpack

from maat.api.attempts import AttemptOut, AttemptSort, GradientSampleOut, LogOut, StepSampleOut
from maat.api.beliefs import BeliefOut
from maat.api.bulk import BulkBody, BulkOut
from maat.api.commands import CommandOut
from maat.api.fields import Page
from maat.api.job_answers import (
    AllocationSpanOut,
    BatchOut,
    DryRunOut,
    ExplanationOut,
    JobEventOut,
    JobOut,
    JobPage,
)
from maat.api.jobs import JobBody, JobChanges
from maat.client.calls.core import (
    Call,
    Fields,
    as_json,
    given_of,
    keyed_by,
    path_of,
    version_of,
)


class JobFilters(TypedDict, total=False):
    """The filters of the job list; rows, totals and state counts all use them."""

    cluster: str | None
    state: Sequence[str] | None
    tenant: Sequence[str] | None
    owner: str | None
    model: Sequence[str] | None
    gpu_type: Sequence[str] | None
    q: str | None
    label: Sequence[str] | None
    array: str | None
    flagged: bool | None
    submitted_after: str | None
    submitted_before: str | None
    sort: str | None
    limit: int | None
    cursor: str | None
    skip: int | None
    count: str | None


def jobs(**filters: Unpack[JobFilters]) -> Call[JobPage]:
    return Call("GET", path_of("jobs"), given_of(**filters))


def job(job_id: str) -> Call[JobOut]:
    return Call("GET", path_of("jobs", job_id))


def submit_job(body: JobBody | Fields, *, idempotency_key: str | None = None) -> Call[JobOut]:
    return Call("POST", path_of("jobs"), body=as_json(body), headers=keyed_by(idempotency_key))


def try_job(body: JobBody | Fields) -> Call[DryRunOut]:
    """Ask what a submission would make, without making it."""
    return Call("POST", path_of("jobs"), {"dry_run": "true"}, body=as_json(body))


def submit_jobs(
    bodies: Sequence[JobBody | Fields], *, mode: str = "atomic", idempotency_key: str | None = None
) -> Call[BatchOut]:
    return Call(
        "POST",
        path_of("jobs:batch"),
        body={"jobs": [as_json(body) for body in bodies], "mode": mode},
        headers=keyed_by(idempotency_key),
    )


def submit_array(
    body: JobBody | Fields,
    *,
    indices: Sequence[int],
    idempotency_key: str | None = None,
) -> Call[BatchOut]:
    """Submit a job once for each of these indices."""
    asked = {"job": as_json(body), "indices": list(indices)}
    return Call("POST", path_of("jobs:array"), body=asked, headers=keyed_by(idempotency_key))


def add_demo_jobs(
    count: int,
    *,
    cluster_id: str | None = None,
    seed: int | None = None,
    idempotency_key: str | None = None,
) -> Call[BatchOut]:
    body = given_of(count=count, cluster_id=cluster_id, seed=seed)
    return Call("POST", path_of("jobs:demo"), body=body, headers=keyed_by(idempotency_key))


def cancel_job(job_id: str) -> Call[JobOut]:
    return Call("POST", path_of("jobs", job_id, "actions", "cancel"))


def pause_job(job_id: str) -> Call[JobOut]:
    """Ask that rounds leave a job out, until it is resumed."""
    return Call("POST", path_of("jobs", job_id, "actions", "pause"))


def hold_job(job_id: str) -> Call[JobOut]:
    """Keep a job that holds no GPUs from starting."""
    return Call("POST", path_of("jobs", job_id, "actions", "hold"))


def resume_job(job_id: str) -> Call[JobOut]:
    """Put a paused or held job back into the queue."""
    return Call("POST", path_of("jobs", job_id, "actions", "resume"))


def change_jobs(body: BulkBody | Fields, *, idempotency_key: str | None = None) -> Call[BulkOut]:
    """Act on all living jobs that a filter matches; with `dry_run`, only say what would follow."""
    return Call("POST", path_of("jobs:bulk"), body=as_json(body), headers=keyed_by(idempotency_key))


def change_job(job_id: str, changes: JobChanges | Fields, *, version: int) -> Call[JobOut]:
    """Change what may change while a job lives: its name, priority, weight and labels."""
    return Call(
        "PATCH", path_of("jobs", job_id), body=as_json(changes), headers=version_of(version)
    )


def clone_job(
    job_id: str, changes: Fields | None = None, *, idempotency_key: str | None = None
) -> Call[JobOut]:
    """Submit a job like this one. `changes`: by field; secrets are not copied."""
    body = {"changes": dict(changes or {})}
    headers = keyed_by(idempotency_key)
    return Call("POST", path_of("jobs", job_id, "actions", "clone"), body=body, headers=headers)


def job_command(job_id: str) -> Call[CommandOut]:
    return Call("GET", path_of("jobs", job_id, "command"))


def attempts(
    job_id: str,
    *,
    sort: AttemptSort | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[Page[AttemptOut]]:
    query = given_of(sort=sort, limit=limit, cursor=cursor)
    return Call("GET", path_of("jobs", job_id, "attempts"), query)


def samples(
    job_id: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[Page[StepSampleOut]]:
    return Call("GET", path_of("jobs", job_id, "samples"), given_of(limit=limit, cursor=cursor))


def gradients(
    job_id: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[Page[GradientSampleOut]]:
    return Call("GET", path_of("jobs", job_id, "gradients"), given_of(limit=limit, cursor=cursor))


def belief(job_id: str) -> Call[BeliefOut]:
    """Ask what was learnt of a job: step times by GPU type, the parts of a restart."""
    return Call("GET", path_of("jobs", job_id, "belief"))


def reset_belief(job_id: str) -> Call[None]:
    """Forget what was measured of a job; it is measured again as it trains."""
    return Call("DELETE", path_of("jobs", job_id, "belief"))


def dismiss_flag(job_id: str, kind: str) -> Call[JobOut]:
    """Say that what the job reports is right, though it is unlikely."""
    return Call("POST", path_of("jobs", job_id, "flags", kind, "actions", "dismiss"))


def log(
    job_id: str, attempt: int, rank: int = 0, *, offset: int = 0, limit: int | None = None
) -> Call[LogOut]:
    """Read a part of a rank's log; the next begins at `next_offset`."""
    return Call(
        "GET",
        path_of("jobs", job_id, "attempts", attempt, "logs", rank),
        given_of(offset=offset, limit=limit),
    )


def log_file(job_id: str, attempt: int, rank: int = 0) -> Call[bytes]:
    """Read all that a rank has written so far, byte by byte as it is."""
    return Call("GET", path_of("jobs", job_id, "attempts", attempt, "logs", rank, "download"))


def allocations(job_id: str) -> Call[Page[AllocationSpanOut]]:
    return Call("GET", path_of("jobs", job_id, "allocations"), {"limit": 500})


def events(job_id: str, *, limit: int = 500) -> Call[Page[JobEventOut]]:
    return Call("GET", path_of("jobs", job_id, "events"), {"limit": limit})


def explanation(job_id: str) -> Call[ExplanationOut]:
    return Call("GET", path_of("jobs", job_id, "explanation"))
