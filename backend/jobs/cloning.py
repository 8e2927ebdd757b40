"""A job like another one: its declaration with some fields changed. Commits nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from sqlmodel import Session, col, select

from backend.accounts.identity import Principal
from backend.commands.models import JobCommand, JobSecret
from backend.jobs.models import Job
from backend.problems import FieldError, Forbidden, Invalid
from backend.validation_errors import field_error
from maat.api.commands import CommandBody
from maat.api.jobs import JobBody

_ITS_OWN = frozenset({"run", "external_id", "after", "deadline"})
_MOST_ERRORS = 20


def body_like(
    session: Session, principal: Principal, job: Job, changes: Mapping[str, Any]
) -> JobBody:
    """Return the declaration of a job with these fields changed; null takes a field's default.

    External id, deadline and the jobs that it waited for are left out. Raises Forbidden for another
    tenant's job, Invalid if a secret's value is missing or the changed declaration is no valid job.
    """
    if job.tenant_id != principal.tenant_id:
        raise Forbidden("The job is another tenant's. Only jobs of your own tenant can be cloned.")
    given: dict[str, Any] = {
        name: getattr(job, name) for name in JobBody.model_fields if name not in _ITS_OWN
    }
    run = _run_of(session, job)
    if run is not None:
        given["run"] = run
    merged = _merged(given, changes)
    _check_secrets(session, job, merged.get("run"))
    try:
        return JobBody.model_validate(merged)
    except ValidationError as error:
        found = [
            _of_changes(field_error({**one, "loc": ("body", *one["loc"])}, JobBody))
            for one in error.errors(include_url=False)[:_MOST_ERRORS]
        ]
        first = found[0]
        raise Invalid(f"{first.pointer}: {first.message} {first.remedy}", errors=found) from None


def _run_of(session: Session, job: Job) -> dict[str, Any] | None:
    command = session.get(JobCommand, job.id)
    if command is None:
        return None
    return {
        name: getattr(command, name) for name in CommandBody.model_fields if name != "secret_env"
    }


def _merged(given: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**given, **changes}
    if isinstance(changes.get("run"), Mapping):
        whole = {**(given.get("run") or {}), **changes["run"]}
        merged["run"] = {name: value for name, value in whole.items() if value is not None}
    return {name: value for name, value in merged.items() if value is not None}


def _check_secrets(session: Session, job: Job, run: Any) -> None:
    """Raises Invalid for each secret of the job whose value is not given again."""
    names = session.exec(
        select(JobSecret.name).where(JobSecret.job_id == job.id).order_by(col(JobSecret.name))
    ).all()
    again = run.get("secret_env") if isinstance(run, Mapping) else None
    missing = [name for name in names if not (isinstance(again, Mapping) and name in again)]
    if not missing:
        return
    message, remedy = "Secrets are not copied.", "Give its value again."
    errors = [
        FieldError(f"/changes/run/secret_env/{name}", "secret_not_copied", message, remedy)
        for name in missing
    ]
    raise Invalid(f"Secrets are not copied: give {', '.join(missing)} again.", errors=errors)


def _of_changes(error: FieldError) -> FieldError:
    return FieldError(
        f"/changes{error.pointer}", error.code, error.message, error.remedy, error.value
    )
