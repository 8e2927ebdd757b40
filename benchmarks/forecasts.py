"""How long an answer to a what-if question takes, and the forecast after a round.

A live cluster of 64 GPUs in a database, with 100 jobs: of the models of a trace, half an hour after
they came. From the question's row to its answer, as the worker does it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import sqlalchemy as sa
from sqlmodel import col

from backend.bootstrap_data import ensure_defaults
from backend.clocktime import utc_now
from backend.database import Database
from backend.models import Cluster, ClusterForecast, Job, Node, Operation, User, WhatIf
from backend.settings import Settings
from benchmarks.live_round import sqlite_database
from benchmarks.table import Cell, Figures
from maat.scheduling.cluster import Cluster as EngineCluster
from maat.workloads.generators import generate
from worker.forecasts import what_if, work
from worker.live import step_cluster

SHAPE, JOBS, ROUNDS = "t4=6x4,rtx=3x8,a100=2x8", 100, 30
POLICIES = {"sia": "whole-node", "fifo": "packed-sticky"}
COLUMNS = {
    "policy": "policy",
    "question": "question",
    "active": "jobs left",
    "draws": "draws",
    "wall": "wall s",
    "cpu": "CPU s",
}
NOTES = [
    "wall: from the row of the question to its stored answer; CPU: of the worker's process. What "
    "is fitted once per process was fitted before.",
    "An answer begins no other pair of draws after 3 s. after a round: up to 29 draws within 10 "
    "CPU s, then it rests three times as long.",
]
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
            rows += _rows(database, policy, placer)
    title = f"Forecasts of {JOBS} jobs on 64 GPUs"
    return Figures("forecasts", title, COLUMNS, rows, list(NOTES))


def _rows(database: Database, policy: str, placer: str) -> list[dict[str, Cell]]:
    cluster_id = _filled(database, policy, placer)
    _answer(database, cluster_id, QUESTIONS["another policy"])  # fits
    rows: list[dict[str, Cell]] = []
    for name, request in QUESTIONS.items():
        spent = _timed(lambda asked=request: _answer(database, cluster_id, asked))
        rows.append({"policy": policy, "question": name, **spent})
    spent = _timed(lambda: _after_round(database, cluster_id))
    return [*rows, {"policy": policy, "question": "(after a round)", **spent}]


def _timed(run: Callable[[], dict[str, Cell]]) -> dict[str, Cell]:
    wall, cpu = time.perf_counter(), time.process_time()
    found = run()
    return {**found, "wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


def _answer(database: Database, cluster_id: str, request: Mapping[str, Any]) -> dict[str, Cell]:
    with database.session_scope() as session:
        owner = session.connection().execute(sa.select(col(User.id), col(User.tenant_id))).one()
        mine = {"owner_id": owner.id, "tenant_id": owner.tenant_id}
        operation = Operation(kind=what_if.KIND, **mine)
        session.add(operation)
        session.flush()
        asked = WhatIf(
            cluster_id=cluster_id, operation_id=operation.id, request=dict(request), **mine
        )
        session.add(asked)
    what_if.answer(database, asked.id)
    with database.session_scope(writes=False) as session:
        result = session.get_one(WhatIf, asked.id).result
    return {"active": result["after"]["jobs"], "draws": result["draws"]}


def _after_round(database: Database, cluster_id: str) -> dict[str, Cell]:
    found = work.work_out(database, cluster_id)
    if found is None:
        with database.session_scope(writes=False) as session:
            raise RuntimeError(session.get_one(ClusterForecast, cluster_id).detail)
    return {"active": len(found.jobs), "draws": len(found.draws)}


def _filled(database: Database, policy: str, placer: str) -> str:
    """Return a cluster in which the jobs of half an hour came, and rounds were made."""
    ensure_defaults(database, Settings(_env_file=None))
    with database.session_scope() as session:
        owner = session.connection().execute(sa.select(col(User.id), col(User.tenant_id))).one()
        cluster = Cluster(
            name="measured", policy=policy, placer=placer, round_seconds=60.0, speed=1e-9
        )
        session.add(cluster)
        session.flush()
        session.add_all(
            Node(
                cluster_id=cluster.id,
                name=node.id,
                gpu_type=node.gpu_type,
                gpu_count=node.gpu_count,
                position=place,
            )
            for place, node in enumerate(EngineCluster.parse(SHAPE).nodes)
        )
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
            for job in generate("philly", jobs=JOBS, hours=0.5, seed=3).jobs
        )
    for number in range(1, ROUNDS + 1):
        with database.session_scope() as session:
            due = sa.update(Cluster).where(col(Cluster.id) == cluster.id)
            values = {"anchor_seconds": number * 60.0 + 1.0, "anchor_wall": utc_now()}
            session.connection().execute(due.values(**values))
        step_cluster(database, cluster.id)
    return cluster.id
