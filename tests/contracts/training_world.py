"""The tables of an executor that has its own, and an engine that does at once what rounds want."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, SQLModel, col, select

from backend.models import AttemptRow, JobCommand
from backend.models import Cluster as ClusterRow
from backend.models import Job as JobRow
from maat.vocabulary import AttemptState, ExecutorKind, Outcome
from worker.executors import ExecutorEntry
from worker.writes import Write, carry_out

WORK = 600.0  # GPU seconds of every job


@dataclass
class OwnTables:
    """A database in memory of one cluster, which an executor reads and writes."""

    entry: ExecutorEntry
    cluster_id: str
    session: Session = field(init=False)

    def __post_init__(self) -> None:
        engine = sa.create_engine("sqlite://")
        SQLModel.metadata.create_all(engine)
        self.session = Session(engine, expire_on_commit=False)
        self.cluster = ClusterRow(
            id=self.cluster_id,
            name=self.cluster_id,
            policy="fifo",
            placer="packed-sticky",
            round_seconds=60.0,
            executor=ExecutorKind.LOCAL.value,
        )
        self.session.add(self.cluster)
        self.session.commit()

    def read(self, rows: Mapping[str, JobRow]) -> Any:
        """Return what the executor is given when these jobs are unfinished."""
        known = {row.id: row for row in self.session.exec(select(JobRow))}
        for row in rows.values():
            if row.id not in known:
                self.session.add(JobRow(**row.model_dump() | {"cluster_id": self.cluster_id}))
                command = {"argv": ["train"], "cwd": "/", "stop_seconds": 1.0, "max_retries": 0}
                self.session.add(JobCommand(job_id=row.id, total_samples=WORK, **command))
        for job_id, row in known.items():
            if job_id not in rows:
                row.finished_seconds = 0.0
                self.session.add(row)
        self.session.commit()
        self.session.expunge_all()
        assert self.entry.read is not None
        found = self.entry.read(self.session, self.cluster)
        self.session.expunge_all()
        return found

    def write(self, writes: Sequence[Write]) -> None:
        carry_out(self.session, writes)
        self.session.commit()

    def live(self, now: float) -> None:
        """Start what was ordered, end what was asked to end or has done its work."""
        unended = col(AttemptRow.state) != AttemptState.ENDED.value
        rows = list(self.session.exec(select(AttemptRow).where(unended)))
        for row in rows:
            if row.stop_reason is not None:
                self._end(row, Outcome.STOPPED, now)
            elif row.state == AttemptState.ORDERED:
                row.state = AttemptState.RUNNING.value
                row.queued_seconds = row.alive_seconds = row.running_seconds = now
                row.progress, row.running_plan = self._done(row.job_id), row.plan
            else:
                began = 0.0 if row.running_seconds is None else row.running_seconds
                before = self._done(row.job_id, other_than=row.id)
                row.progress = min(before + (now - began) * row.gpu_count, WORK)
                if row.progress >= WORK:
                    self._end(row, Outcome.SUCCEEDED, now)
            self.session.add(row)
        self.session.commit()

    def _end(self, row: AttemptRow, outcome: Outcome, now: float) -> None:
        row.state, row.outcome, row.ended_seconds = AttemptState.ENDED.value, outcome.value, now

    def _done(self, job_id: str, *, other_than: str = "") -> float:
        rows = self.session.exec(select(AttemptRow).where(AttemptRow.job_id == job_id))
        return max((r.progress or 0.0 for r in rows if r.id != other_than), default=0.0)
