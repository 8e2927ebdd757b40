"""A cluster that runs commands on this machine, and jobs of small real programmes on it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from live_samples import job, make_cluster, make_owner
from sqlmodel import col, select

from backend.clocktime import cluster_seconds, wind_to
from backend.commands.service import store_commands
from backend.database import Database
from backend.models import AttemptRow, Cluster, GpuHold, Job, JobEvent, Node
from backend.moments import moment_of
from backend.secret_key import secret_key
from backend.settings import Settings
from maat.api.commands import CommandBody
from maat.scheduling.events import EventKind
from maat.vocabulary import AttemptKind, AttemptState, StopReason
from worker.engines.local import LocalEngine
from worker.engines.protocol import EngineNode
from worker.live import step as live
from worker.live.commands import reconcile_cluster
from worker.live.memory import MEMORY
from worker.training.awaited import Awaited

PATIENCE_SECONDS = 60.0


@dataclass
class TrainingCluster:
    """A cluster whose commands run here; rounds are made when a test says so."""

    database: Database
    settings: Settings
    folder: Path
    cluster_id: str = ""
    jobs: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.cluster_id = make_cluster(
            self.database, executor="local", speed=1.0, round_seconds=1.0, policy="fifo"
        )

    def submit(
        self,
        *argv: str,
        gpu_count: int = 1,
        adaptivity: str = "rigid",
        env: Mapping[str, str] | None = None,
        secret_env: Mapping[str, str] | None = None,
        stop_seconds: float = 5.0,
        max_retries: int = 0,
        profile: bool = True,
        **fields: object,
    ) -> str:
        owner, tenant = make_owner(self.database)
        with self.database.session_scope() as session:
            row = Job(
                cluster_id=self.cluster_id,
                name=f"job-{len(self.jobs)}",
                owner_id=owner,
                tenant_id=tenant,
                model="script",
                adaptivity=adaptivity,
                gpu_count=gpu_count if adaptivity == "rigid" else None,
                submitted_seconds=0.0,
                remaining_work=1.0,
                **fields,
            )
            session.add(row)
            session.flush()
            body = CommandBody(
                argv=list(argv),
                cwd=str(self.folder),
                env=dict(env or {}),
                secret_env=dict(secret_env or {}),
                stop_seconds=stop_seconds,
                max_retries=max_retries,
                profile=profile,
            )
            store_commands(session, [(row.id, body)], secret_key(self.settings))
        self.jobs.append(row.id)
        return row.id

    def round(self) -> int | None:
        """Make a round as soon as one is due, and look at once."""
        number = self.decide()
        self.look()
        return number

    def decide(self) -> int | None:
        """Make a round as soon as one is due."""
        end = time.monotonic() + PATIENCE_SECONDS
        number = None
        while number is None and time.monotonic() < end:
            number = live.step_cluster(self.database, self.cluster_id)
            if number is None:
                time.sleep(0.05)
        return number

    def look(self) -> Awaited | None:
        return reconcile_cluster(self.database, self.cluster_id, self.settings).awaited

    def look_until(self, there: Callable[[], object]) -> None:
        end = time.monotonic() + PATIENCE_SECONDS
        while not there():
            assert time.monotonic() < end, [
                (a.number, a.state, a.outcome, a.reason)
                for i in self.jobs
                for a in self.attempts(i)
            ]
            self.look()
            time.sleep(0.05)

    def state(self, job_id: str) -> str:
        """The state as the rows have it now, once every look is noted."""
        self.note()
        return job(self.database, job_id).state

    def note(self) -> None:
        with live.leased(self.database, self.cluster_id) as fencing:
            assert fencing is not None
            live.note_cluster(self.database, self.cluster_id, fencing)

    def attempts(self, job_id: str) -> Sequence[AttemptRow]:
        with self.database.session_scope(writes=False) as session:
            return session.exec(
                select(AttemptRow)
                .where(AttemptRow.job_id == job_id)
                .order_by(col(AttemptRow.number))
            ).all()

    def row(self) -> Cluster:
        with self.database.session_scope(writes=False) as session:
            return session.get_one(Cluster, self.cluster_id)

    def events(self, job_id: str, kind: EventKind = EventKind.STATE) -> list[dict[str, Any]]:
        """Return the data of a job's events of one kind, in their order."""
        mine = (JobEvent.job_id == job_id, JobEvent.kind == kind.value)
        with self.database.session_scope(writes=False) as session:
            found = session.exec(select(JobEvent).where(*mine).order_by(col(JobEvent.id)))
            return [event.data for event in found]

    def profiles(self, job_id: str) -> Sequence[AttemptRow]:
        return [one for one in self.attempts(job_id) if one.kind == AttemptKind.PROFILE]

    def outcomes(self, job_id: str) -> list[str | None]:
        return [attempt.outcome for attempt in self.attempts(job_id)]

    def attempt_state(self, job_id: str) -> str:
        return self.attempts(job_id)[-1].state

    def has_ended(self, job_id: str) -> bool:
        attempts = self.attempts(job_id)
        return bool(attempts) and attempts[-1].state == AttemptState.ENDED

    def holds(self) -> list[tuple[str, int]]:
        with self.database.session_scope(writes=False) as session:
            found = session.exec(
                select(Node.name, GpuHold.gpu_index)
                .join(Node, col(Node.id) == col(GpuHold.node_id))
                .order_by(col(Node.name), col(GpuHold.gpu_index))
            )
            return [(name, index) for name, index in found]

    def change(self, job_id: str, **values: object) -> None:
        with self.database.session_scope() as session:
            row = session.get_one(Job, job_id)
            for name, value in values.items():
                setattr(row, name, value)
            session.add(row)

    def change_attempt(self, attempt_id: str, **values: object) -> None:
        with self.database.session_scope() as session:
            row = session.get_one(AttemptRow, attempt_id)
            for name, value in values.items():
                setattr(row, name, value)
            session.add(row)

    def ask_to_end(self, job_id: str, reason: StopReason) -> None:
        """Ask as a round does."""
        with self.database.session_scope(writes=False) as session:
            cluster = session.get_one(Cluster, self.cluster_id)
            now = cluster_seconds(cluster, moment_of(session))
        attempt = self.attempts(job_id)[-1]
        self.change_attempt(attempt.id, stop_reason=reason.value, stop_seconds=now)

    def wind(self, seconds: float) -> None:
        """Let cluster time pass."""
        with self.database.session_scope() as session:
            row = session.get_one(Cluster, self.cluster_id)
            now = moment_of(session)
            wind_to(row, now, cluster_seconds(row, now) + seconds)
            session.add(row)

    def forget_everything(self) -> None:
        """Be a newly started worker."""
        MEMORY.forget(self.database)

    def faults(self) -> Mapping[str, str | None]:
        with self.database.session_scope(writes=False) as session:
            nodes = session.exec(select(Node).where(Node.cluster_id == self.cluster_id))
            return {node.name: node.fault for node in nodes}

    def set_down(self, node: str) -> None:
        with self.database.session_scope(writes=False) as session:
            nodes = session.exec(select(Node).where(Node.cluster_id == self.cluster_id)).all()
        root = self.settings.data_path / "training" / self.cluster_id
        known = [EngineNode(one.name, one.gpu_type, one.gpu_count, True) for one in nodes]
        LocalEngine(root, known).set_down(node, "It was switched off.")

    @property
    def engine(self) -> LocalEngine:
        return LocalEngine(self.settings.data_path / "training" / self.cluster_id, [])

    def log(self, job_id: str, rank: int = 0) -> str:
        folder = self.engine.directory(self.attempts(job_id)[-1].id)
        return (folder / f"rank-{rank}.log").read_text()

    def close(self) -> None:
        """End everything that runs."""
        self.engine.strays([])
