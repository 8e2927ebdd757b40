"""How long an answer to a what-if question takes, and the forecast after a round.

A live cluster of 64 GPUs in a database, with 100 jobs: of the models of a trace, half an hour after
they came. From the question's row to its answer, as the worker does it. Of 2,048 GPUs and 1,000
jobs, the forecast after a round.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import sqlalchemy as sa
from sqlmodel import col, select

from backend.bootstrap_data import ensure_defaults
from backend.clocktime import utc_now
from backend.database import Database
from backend.forecasts.service import KIND
from backend.models import (
    Cluster,
    ClusterForecast,
    ForecastInterest,
    Job,
    JobForecastRow,
    Operation,
    OperationState,
    User,
    WhatIf,
)
from backend.settings import Settings
from benchmarks.rounds.live_round import nodes_of, sqlite_database
from benchmarks.table import Cell, Figures
from maat.workloads.generators import generate
from worker.forecasts import what_if, work
from worker.live.step import step_cluster

SHAPE, JOBS, ROUNDS = "t4=6x4,rtx=3x8,a100=2x8", 100, 30
LARGE = "t4=192x4,rtx=64x8,a100=96x8", 1_000
POLICIES = {"sia": "whole-node", "fifo": "packed-sticky"}
COLUMNS = {
    "gpus": "GPUs",
    "policy": "policy",
    "question": "question",
    "active": "jobs left",
    "draws": "draws",
    "first": "first answer s",
    "wall": "last answer s",
    "cpu": "CPU s",
}
NOTES = [
    "From the row of the question to its first and to its last stored answer, wall seconds; CPU: "
    "of what answers alone. What is fitted once per process was fitted before.",
    "An answer begins no other pair of draws after 3 s. beside a forecast: while one after a round "
    "is under way in the same process.",
    "after a round: up to 29 draws within 10 CPU s, then it rests three times as long; first: "
    "those of the jobs that had none, from 3 draws.",
]
LOOK_SECONDS = 0.05
QUESTIONS: Mapping[str, Mapping[str, Any]] = {
    "drain a node": {"changes": {"drain_nodes": ["a100-0"]}},
    "two more a100 nodes": {
        "changes": {"add_nodes": [{"gpu_type": "a100", "gpu_count": 8, "count": 2}]}
    },
    "another policy": {"changes": {"policy": "srtf"}},
}


def measure() -> Figures:
    rows: list[dict[str, Cell]] = []
    for policy, placer in POLICIES.items():
        with sqlite_database() as database:
            rows += [{"gpus": 64, **row} for row in _rows(database, policy, placer)]
        with sqlite_database() as database:
            rows.append({"gpus": 2_048, "policy": policy, **_large(database, policy, placer)})
    title = f"Forecasts of {JOBS} jobs on 64 GPUs, and of {LARGE[1]:,} jobs on 2,048"
    return Figures("forecasts", title, COLUMNS, rows, list(NOTES))


def _rows(database: Database, policy: str, placer: str) -> list[dict[str, Cell]]:
    cluster_id = filled(database, policy, placer, SHAPE, JOBS)
    _answered(database, cluster_id, QUESTIONS["another policy"])  # fits
    rows: list[dict[str, Cell]] = []
    for name, request in QUESTIONS.items():
        spent = _answered(database, cluster_id, request)
        rows.append({"policy": policy, "question": name, **spent})
    rows.append(
        {"policy": policy, "question": "(after a round)", **_after_round(database, cluster_id)}
    )
    _make_due(database, cluster_id)
    kept = work.begin(database, cluster_id)
    _wait(lambda: _is_under_way(database, cluster_id))
    for name, request in QUESTIONS.items():
        spent = _answered(database, cluster_id, request)
        beside = f"{name}, beside a forecast" if kept.is_alive() else name
        rows.append({"policy": policy, "question": beside, **spent})
    kept.join()
    return rows


def _large(database: Database, policy: str, placer: str) -> dict[str, Cell]:
    cluster_id = filled(database, policy, placer, *LARGE)
    return {"question": "(after a round)", **_after_round(database, cluster_id)}


class _Worker(threading.Thread):
    """Does a piece of work, and notes what it took."""

    def __init__(self, run: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self._run, self.wall, self.cpu = run, 0.0, 0.0

    def run(self) -> None:
        wall, cpu = time.perf_counter(), time.thread_time()
        self._run()
        self.wall, self.cpu = time.perf_counter() - wall, time.thread_time() - cpu

    def time_until(self, happened: Callable[[], bool]) -> float:
        """Start, and return the seconds until that is so; wait for the end."""
        begun = time.perf_counter()
        self.start()
        _wait(lambda: happened() or not self.is_alive())
        found = time.perf_counter() - begun
        self.join()
        return found


def _wait(happened: Callable[[], bool]) -> None:
    while not happened():
        time.sleep(LOOK_SECONDS)


def _answered(database: Database, cluster_id: str, request: Mapping[str, Any]) -> dict[str, Cell]:
    with database.session_scope() as session:
        owner = session.connection().execute(sa.select(col(User.id), col(User.tenant_id))).one()
        mine = {"owner_id": owner.id, "tenant_id": owner.tenant_id}
        operation = Operation(kind=KIND, **mine)
        session.add(operation)
        session.flush()
        asked = WhatIf(
            cluster_id=cluster_id, operation_id=operation.id, request=dict(request), **mine
        )
        session.add(asked)
    worker = _Worker(lambda: what_if.answer(database, asked.id))
    first = worker.time_until(lambda: _result_of(database, asked.id) is not None)
    result = _result_of(database, asked.id)
    return {
        "active": result["after"]["jobs"],
        "draws": result["draws"],
        "first": first,
        "wall": worker.wall,
        "cpu": worker.cpu,
    }


def _result_of(database: Database, forecast_id: str) -> Any:
    with database.session_scope(writes=False) as session:
        return session.get_one(WhatIf, forecast_id).result


def _after_round(database: Database, cluster_id: str) -> dict[str, Cell]:
    worker = _Worker(lambda: work.work_out(database, cluster_id))
    first = worker.time_until(lambda: _has_rows(database, cluster_id))
    with database.session_scope(writes=False) as session:
        row = session.get_one(ClusterForecast, cluster_id)
        if row.detail is not None:
            raise RuntimeError(row.detail)
        mine = col(JobForecastRow.cluster_id) == cluster_id
        active = len(session.exec(select(JobForecastRow.job_id).where(mine)).all())
    cpu = {"first": first, "wall": worker.wall, "cpu": worker.cpu}
    return {"active": active, "draws": row.draws, **cpu}


def _has_rows(database: Database, cluster_id: str) -> bool:
    with database.session_scope(writes=False) as session:
        mine = col(JobForecastRow.cluster_id) == cluster_id
        return session.exec(select(JobForecastRow.job_id).where(mine).limit(1)).first() is not None


def _is_under_way(database: Database, cluster_id: str) -> bool:
    with database.session_scope(writes=False) as session:
        row = session.get(ClusterForecast, cluster_id)
        return row is not None and row.state == OperationState.RUNNING


def _make_due(database: Database, cluster_id: str) -> None:
    """Let the cluster have no forecast again, and somebody read them, so that one is due."""
    with database.session_scope() as session:
        session.merge(ForecastInterest(cluster_id=cluster_id, at=utc_now()))
        session.delete(session.get_one(ClusterForecast, cluster_id))


def filled(database: Database, policy: str, placer: str, shape: str, jobs: int) -> str:
    """Return a cluster in which the jobs of half an hour came, and rounds were made."""
    ensure_defaults(database, Settings(_env_file=None))
    with database.session_scope() as session:
        owner = session.connection().execute(sa.select(col(User.id), col(User.tenant_id))).one()
        cluster = Cluster(
            name="measured", policy=policy, placer=placer, round_seconds=60.0, speed=1e-9
        )
        session.add(cluster)
        session.flush()
        session.add_all(nodes_of(cluster.id, shape))
        session.add_all(
            Job(
                cluster_id=cluster.id,
                name=job.name,
                owner_id=owner.id,
                tenant_id=owner.tenant_id,
                model=job.model,
                adaptivity="adaptive",
                gpu_count=job.gpu_count,
                max_gpus=max(16, job.gpu_count),
                submitted_seconds=job.submit_seconds,
                remaining_work=1.0,
            )
            for job in generate("philly", jobs=jobs, hours=0.5, seed=3).jobs
        )
    for number in range(1, ROUNDS + 1):
        with database.session_scope() as session:
            due = sa.update(Cluster).where(col(Cluster.id) == cluster.id)
            values = {"anchor_seconds": number * 60.0 + 1.0, "anchor_wall": utc_now()}
            session.connection().execute(due.values(**values))
        step_cluster(database, cluster.id)
    return cluster.id
