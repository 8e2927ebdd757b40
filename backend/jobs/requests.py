"""What a stored job asks for, and whether it may ask for something else now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from sqlmodel import Session, col, select

from backend.clusters.models import Cluster
from backend.clusters.repository import all_gpus_of
from backend.commands.models import JobCommand
from backend.jobs.admission import objections
from backend.jobs.models import Job
from backend.problems import Conflict, FieldError, Invalid
from backend.quotas.repository import ceilings_of
from backend.rounds.models import OutboxMessage
from backend.validation_errors import field_error
from maat.api.commands import CommandBody
from maat.api.jobs import JobBody
from maat.models.catalog import load_catalog

WITHOUT_GPUS = frozenset({"gpu_types", "gpu_count", "min_gpus", "max_gpus"})
"""What may change of a job that holds no GPUs."""
BEFORE_START = frozenset({"adaptivity", "batch_size"})
"""What may change of a job that never held any: what is measured of a job rests on it."""
REQUEST = WITHOUT_GPUS | BEFORE_START

_OF_ITS_OWN = frozenset({"run", "external_id", "after", "deadline"})


def check_request(session: Session, job: Job, changed: Mapping[str, Any]) -> None:
    """Check that the job, whose row is locked, may ask for this instead.

    Raises Conflict while it holds GPUs or a round is being carried out, Invalid naming the field
    if it could never run so.
    """
    named = ", ".join(sorted(changed))
    if job.gpus is not None:
        raise Conflict(
            f"The job holds GPUs, and {named} can change only while it holds none. Pause it first, "
            "or submit another like it."
        )
    fixed = sorted(changed.keys() & BEFORE_START)
    if fixed and job.started_seconds is not None:
        raise Conflict(
            f"The job has run, and {', '.join(fixed)} can change only before that. Submit another "
            "like it."
        )
    if _is_being_started(session, job.cluster_id):
        raise Conflict("A round is just being carried out, which may start the job. Try again.")
    errors = _objections(session, job, changed)
    if errors:
        first = errors[0]
        raise Invalid(f"{first.message} {first.remedy}", errors=errors)


def request_of(job: Job, changed: Mapping[str, Any], *, command: JobCommand | None) -> JobBody:
    """Return the declaration of a stored job with these fields changed.

    Raises pydantic's ValidationError.
    """
    given: dict[str, Any] = {
        name: getattr(job, name) for name in JobBody.model_fields if name not in _OF_ITS_OWN
    } | dict(changed)
    if command is not None:
        own = {name for name in CommandBody.model_fields if name != "secret_env"}
        given["run"] = {name: getattr(command, name) for name in own}
    return JobBody.model_validate(
        {name: value for name, value in given.items() if value is not None}
    )


def _is_being_started(session: Session, cluster_id: str) -> bool:
    unapplied = select(OutboxMessage.id).where(
        OutboxMessage.cluster_id == cluster_id, col(OutboxMessage.applied_at).is_(None)
    )
    return session.exec(unapplied.limit(1)).first() is not None


def _objections(session: Session, job: Job, changed: Mapping[str, Any]) -> list[FieldError]:
    cluster = session.get_one(Cluster, job.cluster_id)
    try:
        body = request_of(job, changed, command=session.get(JobCommand, job.id))
    except ValidationError as error:
        found = error.errors(include_url=False)
        return [field_error({**one, "loc": ("body", *one["loc"])}, JobBody) for one in found]
    return objections(
        body,
        models=load_catalog(),
        capacity=all_gpus_of(session, cluster.id),
        executor=cluster.executor,
        ceilings=ceilings_of(session, cluster.id, job.tenant_id),
    )
