"""Ended jobs of tenants as the worker leaves them, and what is read of their fairness."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from fastapi.testclient import TestClient
from round_rows import round_row
from sqlmodel import Session, select

from backend.clocktime import utc_now
from backend.database import Database
from backend.models import Cluster, Job, JobAllocation, JobFairness, Tenant, User

HOUR = 3600.0
FAIRNESS = "/api/v1/fairness"
WHY = {
    "waiting_seconds": 60.0,
    "profiling_seconds": 0.0,
    "starting_seconds": 10.0,
    "running_seconds": 30.0,
    "paused_seconds": 0.0,
    "preemptions": 1,
    "starts": 2,
    "reasons": [{"code": "WAITING_CAPACITY", "seconds": 60.0}],
}


class Rows:
    """Writes ended jobs of tenants, as the worker leaves them. The cluster began two days ago."""

    def __init__(self, database: Database) -> None:
        self.database = database
        with database.session_scope() as session:
            cluster = session.exec(select(Cluster)).one()
            midnight = utc_now().replace(hour=0, minute=0, second=0, microsecond=0)
            cluster.epoch = midnight - timedelta(days=2)
            cluster.anchor_wall, cluster.anchor_seconds = utc_now(), 47 * HOUR
            cluster.anchor_boot = None
            cluster.paused = True
            session.add(cluster)
            self.cluster = cluster

    def is_now(self, seconds: float) -> None:
        """Let the cluster, which stands still, be at this time."""
        with self.database.session_scope() as session:
            session.get_one(Cluster, self.cluster.id).anchor_seconds = seconds

    def begins_at(self, seconds: float) -> None:
        """Let the cluster begin so long after its first midnight."""
        with self.database.session_scope() as session:
            cluster = session.get_one(Cluster, self.cluster.id)
            cluster.epoch += timedelta(seconds=seconds)
            cluster.anchor_seconds = 47 * HOUR - seconds
            self.cluster = cluster

    def at(self, seconds: float) -> str:
        return (self.cluster.epoch + timedelta(seconds=seconds)).isoformat()

    def tenant(self, session: Session, name: str) -> tuple[str, str]:
        found = session.exec(select(Tenant).where(Tenant.name == name)).first()
        if found is None:
            found = Tenant(name=name)
            session.add(found)
            session.flush()
        user = session.exec(select(User).where(User.tenant_id == found.id)).first()
        if user is None:
            user = User(name=f"user of {name}", tenant_id=found.id, role="submitter")
            session.add(user)
            session.flush()
        return found.id, user.id

    def job(
        self,
        tenant: str,
        rho: float | None = None,
        *,
        at: float = HOUR,
        since: float = 0.0,
        name: str = "train",
        held: int = 0,
        gpus: Sequence[int] = (),
        **fields: Any,
    ) -> str:
        """A job from `since` that ended at `at`; with a row of fairness unless `at` is None."""
        with self.database.session_scope() as session:
            tenant_id, user_id = self.tenant(session, tenant)
            row = Job(
                cluster_id=self.cluster.id,
                name=name,
                owner_id=user_id,
                tenant_id=tenant_id,
                model="bert",
                adaptivity="adaptive",
                state="succeeded",
                submitted_seconds=since,
                finished_seconds=at,
                remaining_work=0.0,
                **{k: v for k, v in fields.items() if k == "max_gpus"},
            )
            session.add(row)
            session.flush()
            if held:
                session.add(
                    JobAllocation(
                        job_id=row.id,
                        cluster_id=self.cluster.id,
                        round_number=1,
                        from_seconds=since,
                        to_seconds=at,
                        gpu_type="t4",
                        gpu_count=held,
                        gpus=list(gpus),
                        node_count=1,
                    )
                )
            given = {k: v for k, v in fields.items() if k != "max_gpus"}
            done = {
                "state": "succeeded",
                "rule": "mean-of-ratios",
                "formula_version": 1,
                "jct_seconds": 100.0,
                "contention": 2.0,
                "isolated_seconds": {"t4": 50.0},
                "why": WHY,
                "finished_at": utc_now(),
            }
            session.add(
                JobFairness(
                    job_id=row.id,
                    cluster_id=self.cluster.id,
                    tenant_id=tenant_id,
                    finished_seconds=at,
                    rho=rho,
                    **(({} if rho is None else done) | given),
                )
            )
            return row.id

    def capacity(self, gpus: int, *, at: float = 0.0, number: int = 1) -> None:
        with self.database.session_scope() as session:
            session.add(round_row(self.cluster.id, number, at_seconds=at, gpus_total=gpus))

    def forget_rounds_before(self, at: float, *, gpus: int = 8) -> None:
        """Let the oldest round that is left be one at this time."""
        with self.database.session_scope() as session:
            cluster = session.get_one(Cluster, self.cluster.id)
            number = cluster.keep_rounds + 100
            cluster.next_round_number = number + 1
        self.capacity(gpus, at=at, number=number)


def period(rows: Rows, begin: float = 0.0, end: float = 24 * HOUR) -> dict[str, str]:
    return {"from": rows.at(begin), "to": rows.at(end)}


def read(client: TestClient, path: str, **params: Any) -> Any:
    answer = client.get(path, params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()
