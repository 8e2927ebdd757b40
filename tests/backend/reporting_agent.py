"""An agent of one attempt, as the service sees it."""

from __future__ import annotations

import statistics
from typing import Any

from fastapi.testclient import TestClient

from backend.clusters.repository import get_cluster
from backend.database import Database
from backend.models import AttemptRow
from backend.secret_key import secret_key
from backend.settings import Settings
from maat.vocabulary import AttemptState

PLAN = {"total_batch_size": 64, "per_gpu_batch_size": 32, "accumulation_steps": 0}


class Agent:
    """Reports for an attempt on two GPUs of a cluster of eight."""

    def __init__(self, client: TestClient, database: Database, settings: Settings) -> None:
        self.client, self.database = client, database
        shape = {"name": "here", "shape": "cpu=2x4", "executor": "local"}
        assert client.post("/api/v1/clusters", json=shape).status_code == 201
        job = {"name": "mine", "model": "script", "cluster_id": "here", "batch_size": 64}
        run = {"argv": ["train"], "cwd": "/"}
        answer = client.post("/api/v1/jobs", json={**job, "max_batch_size": 512, "run": run})
        self.job_id = answer.json()["id"]
        self.attempt_id = self.add_attempt(1)
        self.token_of = secret_key(settings).attempt_token
        self.token = self.token_of(self.attempt_id)

    def another_job(self, model: str) -> str:
        """Add an attempt of another job."""
        job = {"name": model, "model": model, "cluster_id": "here", "batch_size": 64}
        run = {"argv": ["train"], "cwd": "/"}
        answer = self.client.post("/api/v1/jobs", json={**job, "run": run})
        return self.add_attempt(1, job_id=answer.json()["id"])

    def add_attempt(self, number: int, *, job_id: str | None = None) -> str:
        with self.database.session_scope() as session:
            row = AttemptRow(
                job_id=job_id or self.job_id,
                cluster_id=get_cluster(session, "here").id,
                number=number,
                round_number=number,
                state=AttemptState.RUNNING.value,
                reports=True,
                gpu_type="cpu",
                gpus_by_node={"cpu-0": [0, 1]},
                gpu_count=2,
                plan=PLAN,
                plan_number=3,
                ordered_seconds=0.0,
            )
            session.add(row)
        return row.id

    def report(self, *, token: str | None = None, to: str | None = None, **fields: Any) -> Any:
        body = {
            "sequence": 1,
            "kind": "report",
            "incarnation": "one",
            "world_size": 2,
            "gpu_type": "cpu",
            "progress": {"effective_samples": 640.0, "steps": 10},
            **fields,
        }
        headers = {"Authorization": f"Bearer {self.token if token is None else token}"}
        path = f"/api/v1/attempts/{to or self.attempt_id}/reports"
        return self.client.post(path, json=body, headers=headers)

    def row(self) -> AttemptRow:
        with self.database.session_scope(writes=False) as session:
            return session.get_one(AttemptRow, self.attempt_id)

    def change(self, **values: object) -> None:
        with self.database.session_scope() as session:
            row = session.get_one(AttemptRow, self.attempt_id)
            for name, value in values.items():
                setattr(row, name, value)
            session.add(row)


def steps(*seconds: float, **fields: Any) -> dict[str, Any]:
    mean = statistics.fmean(seconds)
    return {
        "per_gpu_batch_size": 32,
        "node_count": 1,
        "replica_count": 2,
        "steps": len(seconds),
        "step_seconds": {"mean": mean, "m2": sum((s - mean) ** 2 for s in seconds)},
        "sync_seconds": 0.01,
        **fields,
    }
