"""What rounds write of a job's row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa

from backend.columns import json_text
from backend.models import Job as JobRow
from maat.scheduling.job import Allocation

_JOBS: sa.Table = JobRow.__table__  # type: ignore[attr-defined]
_JSON = ("gpus", "batch", "reason_evidence")


class Readings(NamedTuple):
    """The counters of a job, which only grow: what a span achieved is their difference."""

    processed_samples: float
    gained_samples: float
    lost_gpu_seconds: float


@dataclass
class JobStanding:
    """The columns of a job that its rounds write."""

    state: str
    started_seconds: float | None
    finished_seconds: float | None
    progress: float
    remaining_work: float
    gpu_seconds: float
    processed_samples: float
    gained_samples: float
    lost_gpu_seconds: float
    restarts: int
    paused_since_seconds: float | None
    unwaited_seconds: float
    deadline_told_seconds: float | None
    goodput: float | None
    gpu_type: str | None
    gpus: list[int] | None
    batch: dict[str, Any] | None
    reason_code: str
    reason_evidence: dict[str, Any]
    as_of_round: int | None

    @classmethod
    def of(cls, row: JobRow) -> JobStanding:
        # The values as read: accessing each attribute costs many times as much.
        loaded = vars(row)
        return cls(**{name: loaded[name] for name in _WRITTEN})

    @property
    def readings(self) -> Readings:
        return Readings(self.processed_samples, self.gained_samples, self.lost_gpu_seconds)

    def holds(self, allocation: Allocation | None) -> bool:
        """Return whether these are its GPUs."""
        if allocation is None or self.gpus is None:
            return allocation is None and self.gpus is None
        return self.gpus == list(allocation.gpus)

    def compared(self) -> dict[str, Any]:
        """Return what is written, except the round that explained the job.

        That changes every time.
        """
        values = dict(vars(self))
        del values["as_of_round"]
        return values

    def parameters(self, job_id: str) -> dict[str, Any]:
        """Return the parameters of `update_jobs`."""
        now = self.compared()
        texts = {name: None if now[name] is None else json_text(now[name]) for name in _JSON}
        return {"of_job": job_id, "as_of": self.as_of_round, **now, **texts}


_WRITTEN = tuple(JobStanding.__dataclass_fields__)


def update_jobs() -> sa.Update:
    """Update jobs by id; a job that was ended in the meantime stays ended."""
    mine = sa.and_(_JOBS.c.id == sa.bindparam("of_job"), _JOBS.c.finished_seconds.is_(None))
    written: dict[str, Any] = {
        name: sa.bindparam(name) for name in _WRITTEN if name != "as_of_round"
    }
    return (
        sa.update(_JOBS)
        .where(mine)
        .values(version=_JOBS.c.version + 1, as_of_round=sa.bindparam("as_of"), **written)
    )
