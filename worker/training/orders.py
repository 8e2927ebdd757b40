"""Writes the order for an attempt: everything that an engine needs to start it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlmodel import Session, col, select

from backend.attempts.folders import attempt_folder, checkpoint_folder
from backend.commands.service import secrets_of
from backend.commands.spec import command_spec
from backend.jobs.declarations import declaration_of
from backend.models import AttemptRow, Job, JobCommand
from backend.secret_key import SecretError, SecretKey
from maat.launch.room import NO_ROOM
from maat.vocabulary import AttemptKind
from worker.engines.protocol import Order
from worker.training.profiling import PROFILE_SECONDS, profile_sizes


class OrderError(Exception):
    """An attempt cannot be ordered as it stands. The text says why."""


@dataclass(frozen=True)
class Orders:
    """What orders are made from.

    `root`: the folder of attempts and checkpoints. `url`: where agents report. `allowed`: whether
    the operator allows commands where this worker runs.
    """

    root: Path
    url: str
    key: SecretKey
    allowed: bool

    def order_of(self, session: Session, row: AttemptRow) -> Order:
        """Raises OrderError."""
        if not self.allowed:
            raise OrderError("Commands are not allowed here: the worker lacks MAAT_ALLOW_COMMANDS.")
        command = session.get_one(JobCommand, row.job_id)
        try:
            secrets = secrets_of(session, row.job_id, self.key)
        except SecretError as error:
            raise OrderError(str(error)) from None
        return Order(
            attempt_id=row.id,
            job_id=row.job_id,
            number=row.number,
            directory=attempt_folder(self.root, row.id),
            checkpoint_directory=checkpoint_folder(self.root, row.job_id),
            argv=tuple(command.argv),
            cwd=Path(command.cwd),
            gpu_type=row.gpu_type,
            gpus_by_node={name: tuple(gpus) for name, gpus in row.gpus_by_node.items()},
            stop_seconds=command.stop_seconds,
            env={**command.env, **_place_in_array(session, row), "MAAT_SERVER": self.url},
            secrets=secrets,
            token=self.key.attempt_token(row.id),
            plan=None if row.plan is None else {**row.plan, "number": row.plan_number},
            profile=_profile(session, row) if row.kind == AttemptKind.PROFILE else None,
        )

    def stop_seconds(self, session: Session, job_ids: Sequence[str]) -> Mapping[str, float]:
        columns = (col(JobCommand.job_id), col(JobCommand.stop_seconds))
        found = session.exec(select(*columns).where(col(JobCommand.job_id).in_(set(job_ids))))
        return dict(found.all())


def _place_in_array(session: Session, row: AttemptRow) -> Mapping[str, str]:
    job = session.get_one(Job, row.job_id)
    if job.array_id is None:
        return {}
    return {"MAAT_ARRAY_ID": job.array_id, "MAAT_ARRAY_INDEX": str(job.array_index)}


def _profile(session: Session, row: AttemptRow) -> Mapping[str, Any]:
    """Return what a profile is to do, as the agent reads it."""
    job = session.get_one(Job, row.job_id)
    spec = command_spec(
        declaration_of(job),
        id=job.id,
        submitted_at=job.submitted_seconds,
        gpu_types=[row.gpu_type],
        work=None,
    )
    sizes = profile_sizes(spec, row.gpu_type)
    return {"seconds": PROFILE_SECONDS, "batch_sizes": list(sizes)}


def raise_fence(order: Order) -> None:
    """Say beside the checkpoints which attempt may write them: older ones may not any more.

    Raises OrderError if that cannot be written.
    """
    folder = order.checkpoint_directory
    new = folder / f"fence.{order.number}"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with new.open("w") as file:
            file.write(str(order.number))
            file.flush()
            os.fsync(file.fileno())
        new.replace(folder / "fence")
    except OSError as error:
        remedy = "make room there" if error.errno in NO_ROOM else "see to it"
        raise OrderError(f"{folder} cannot be written: {error.strerror}: {remedy}.") from error
