"""Stores commands with their jobs, and reads them back. Commits nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlmodel import Session, col, select

from backend.answers import answer_of
from backend.commands.models import JobCommand, JobSecret
from backend.problems import NotFound
from backend.secret_key import SecretKey, secret_key
from backend.settings import Settings
from maat.api.commands import CommandBody, CommandOut


def store_commands(
    session: Session, commands: Sequence[tuple[str, CommandBody]], key: SecretKey
) -> None:
    """Store what these jobs run, by their ids; secrets encrypted."""
    for job_id, body in commands:
        session.add(JobCommand(job_id=job_id, **body.model_dump(exclude={"secret_env"})))
        session.add_all(
            JobSecret(job_id=job_id, name=name, value=key.encrypted(value))
            for name, value in body.secret_env.items()
        )
    session.flush()


def show_command(session: Session, job_id: str) -> CommandOut:
    """Raises NotFound if the job runs no command."""
    found = session.get(JobCommand, job_id)
    if found is None:
        raise NotFound("The job runs no command: its cluster plays its jobs.")
    names = session.exec(
        select(JobSecret.name).where(JobSecret.job_id == job_id).order_by(col(JobSecret.name))
    ).all()
    return answer_of(CommandOut, found, secret_names=list(names))


def secrets_of(session: Session, job_id: str, key: SecretKey) -> dict[str, str]:
    """Return the secrets themselves, for the processes of the job. Raises SecretError."""
    found = session.exec(select(JobSecret).where(JobSecret.job_id == job_id)).all()
    return {secret.name: key.decrypted(secret.value) for secret in found}


def without_secrets(job: Any, settings: Settings) -> Any:
    """Return the request for a job with a fingerprint in place of its secrets.

    What recognises a repeated request is stored; short secrets could be guessed from a plain
    digest. `job`: as it was sent, checked or not.
    """
    run = job.get("run") if isinstance(job, Mapping) else None
    if not isinstance(run, Mapping) or not run.get("secret_env"):
        return job
    text = json.dumps(run["secret_env"], sort_keys=True, default=str)
    return {**job, "run": {**run, "secret_env": secret_key(settings).fingerprint(text)}}
