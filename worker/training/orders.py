"""Writes the order for an attempt: everything that an engine needs to start it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlmodel import Session, col, select

from backend.attempts.folders import attempt_folder, checkpoint_folder
from backend.commands.service import secrets_of
from backend.models import AttemptRow, JobCommand
from backend.secret_key import SecretError, SecretKey
from worker.engines.protocol import Order


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
            env={**command.env, "MAAT_SERVER": self.url},
            secrets=secrets,
            token=self.key.attempt_token(row.id),
            plan=None if row.plan is None else {**row.plan, "number": row.plan_number},
        )

    def stop_seconds(self, session: Session, job_ids: Sequence[str]) -> Mapping[str, float]:
        columns = (col(JobCommand.job_id), col(JobCommand.stop_seconds))
        found = session.exec(select(*columns).where(col(JobCommand.job_id).in_(set(job_ids))))
        return dict(found.all())


def raise_fence(order: Order) -> None:
    """Say beside the checkpoints which attempt may write them: older ones may not any more."""
    folder = order.checkpoint_directory
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    new = folder / f"fence.{order.number}"
    with new.open("w") as file:
        file.write(str(order.number))
        file.flush()
        os.fsync(file.fileno())
    new.replace(folder / "fence")
