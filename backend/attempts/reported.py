"""The attempt that is reported for, with all that a report is checked and stored against.

One statement reads it and locks it: reports are most of what the service is asked. Commits nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import aliased
from sqlmodel import Session, col

from backend.attempts.models import AttemptRow
from backend.clusters.models import Cluster
from backend.jobs.models import Job
from backend.moments import DatabaseNow
from backend.problems import NotFound
from maat.vocabulary import AttemptKind, AttemptState


@dataclass(frozen=True)
class Reported:
    """An attempt, its job's and cluster's part in it; the names are those of their columns.

    `newest`: the highest number of the job's attempts. `database_now`: see DatabaseNow.
    """

    id: str
    job_id: str
    cluster_id: str
    kind: str
    number: int
    state: str
    stop_reason: str | None
    gpu_type: str
    gpus_by_node: Mapping[str, list[int]]
    gpu_count: int
    plan: Mapping[str, int] | None
    plan_number: int
    running_plan: Mapping[str, int] | None
    incarnation: str | None
    report_sequence: int
    queued_seconds: float | None
    reported_seconds: float | None
    progress: float | None
    total_samples: float | None
    least_total_samples: float | None
    timed_steps: int
    timed_seconds: float
    timed_since: float | None
    checkpoint_step: int | None
    restore_seconds: float | None
    loss: float | None
    goodput: float | None
    finished: bool
    stepping_seconds: float | None
    processed_samples: float | None
    gained_samples: float | None
    checkpoint_seconds: float | None
    model: str
    tenant_id: str
    jobs_per_gpu: int
    max_batch_size: int | None
    round_seconds: float
    speed: float
    epoch: datetime
    anchor_wall: datetime
    anchor_boot: str | None
    anchor_boot_seconds: float | None
    anchor_seconds: float
    newest: int
    database_now: datetime | None

    @property
    def is_over(self) -> bool:
        is_older = self.newest != self.number and self.stop_reason is None
        return self.state == AttemptState.ENDED or is_older

    @property
    def is_profile(self) -> bool:
        return self.kind == AttemptKind.PROFILE

    @property
    def is_stopped(self) -> bool:
        """Whether its cluster's time stands still: never where processes run (Cluster)."""
        return False


_NUMBERED = aliased(AttemptRow)
_NEWEST = (
    sa.select(sa.func.max(col(_NUMBERED.number)))
    .where(col(_NUMBERED.job_id) == col(AttemptRow.job_id))
    .scalar_subquery()
)
_COMPUTED = {"newest": _NEWEST, "database_now": DatabaseNow()}


def _column(name: str) -> sa.ColumnElement[Any]:
    """Return where a field of Reported comes from: the first table that has it."""
    if name in _COMPUTED:
        return _COMPUTED[name]
    return next(
        getattr(table, name) for table in (AttemptRow, Job, Cluster) if hasattr(table, name)
    )


# Made once: making a statement takes longer than the database needs for its answer.
_READ = (
    sa.select(*(_column(field.name).label(field.name) for field in fields(Reported)))
    .select_from(AttemptRow)
    .join(Job, col(Job.id) == col(AttemptRow.job_id))
    .join(Cluster, col(Cluster.id) == col(AttemptRow.cluster_id))
    .where(col(AttemptRow.id) == sa.bindparam("attempt"))
    .with_for_update(of=AttemptRow)
)


def read_reported(session: Session, attempt_id: str) -> Reported:
    """Read an attempt and lock it until the transaction ends. Raises NotFound."""
    found = session.connection().execute(_READ, {"attempt": attempt_id}).first()
    if found is None:
        raise NotFound("There is no such attempt.")
    return Reported(*found)
