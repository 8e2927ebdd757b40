"""Tests that a request holds SQLite's write lock only to write.

Slow work comes first, and others write meanwhile.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlmodel import select

from backend.clusters import service as clusters
from backend.database import Database
from backend.jobs import routes as job_routes
from backend.jobs import service as jobs
from backend.measurements import service as measurements
from backend.models import Job, Tenant
from backend.simulations import service as simulations
from backend.sweeps import service as sweeps

pytestmark = pytest.mark.both_databases

JOB = {"name": "train", "model": "bert"}
TRACE = {"kind": "generated", "jobs": 2, "hours": 1}
UNEQUAL = {
    "kind": "variability",
    "name": "mine",
    "files": [{"name": "bert-t4.csv", "text": "uuid,perf\na,1.0\nb,1.1\n"}],
}
SWEEP = {
    "name": "s",
    "cluster": "t4=1x4",
    "trace": TRACE,
    "policy": "sia",
    "vary": [{"name": "p", "values": [0.5]}],
}

POSTS: list[tuple[str, str, dict[str, Any], Any, str]] = [
    ("POST", "/jobs", JOB, jobs, "objections"),
    ("POST", "/jobs:batch", {"jobs": [JOB] * 3}, jobs, "objections"),
    ("POST", "/jobs:demo", {"count": 2}, job_routes, "demo_bodies"),
    (
        "POST",
        "/simulations",
        {"name": "s", "traces": [TRACE], "cluster": "t4=1x4", "runs": [{}]},
        simulations,
        "check_fits",
    ),
    ("POST", "/sweeps", SWEEP, sweeps, "check_fits"),
    ("POST", "/measurements", UNEQUAL, measurements, "covered"),
    ("POST", "/clusters", {"name": "new", "shape": "t4=1x4"}, clusters, "check_parts"),
    ("PATCH", "/clusters/demo", {"policy": "fifo"}, clusters, "check_parts"),
]


@pytest.fixture
def database_url(migrated_sqlite: Path, tmp_path: Path) -> str:
    """PostgreSQL has as many writers as come."""
    shutil.copyfile(migrated_sqlite, tmp_path / "maat.db")
    return f"sqlite:///{tmp_path / 'maat.db'}"


@pytest.fixture
def somebody_else_writes(database_url: str) -> Callable[[], None]:
    """Stores a tenant from another connection; fails at once where the writer's place is taken."""
    other = Database(database_url, busy_seconds=0.001)

    def write() -> None:
        with other.session_scope() as session:
            session.add(Tenant(name="meanwhile"))

    return write


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "k"}], ids=["", "with a key"])
@pytest.mark.parametrize(
    ("method", "path", "body", "module", "slow"),
    POSTS,
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_others_write_while_a_request_is_checked(
    client: TestClient,
    monkeypatch: pytest.MonkeyPatch,
    database: Database,
    somebody_else_writes: Callable[[], None],
    method: str,
    path: str,
    body: dict[str, Any],
    module: Any,
    slow: str,
    headers: dict[str, str],
) -> None:
    checked = getattr(module, slow)
    writes = iter([somebody_else_writes])

    def while_others_write(*arguments: Any, **named: Any) -> Any:
        for write in writes:
            write()
        return checked(*arguments, **named)

    monkeypatch.setattr(module, slow, while_others_write)
    answer = client.request(
        method, f"/api/v1{path}", json=body, headers=headers | {"If-Match": "*"}
    )
    assert answer.is_success, answer.text
    with database.session_scope(writes=False) as session:
        assert session.exec(select(Tenant).where(Tenant.name == "meanwhile")).one()


def test_an_external_id_that_somebody_takes_meanwhile_is_theirs(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, database: Database
) -> None:
    checked, again = jobs.objections, iter([None])

    def while_another_submits(*arguments: Any, **named: Any) -> Any:
        for _ in again:
            assert client.post("/api/v1/jobs", json=JOB | {"external_id": "x"}).status_code == 201
        return checked(*arguments, **named)

    monkeypatch.setattr(jobs, "objections", while_another_submits)
    answer = client.post("/api/v1/jobs", json=JOB | {"external_id": "x"})
    assert answer.status_code == 409
    assert "external id 'x'" in answer.json()["detail"]
    with database.session_scope(writes=False) as session:
        assert len(session.exec(select(Job)).all()) == 1


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"shape": "t4=20000x50"}, "/shape"),
        ({"shape": "t4=5001x1"}, "/shape"),
        ({"nodes": [{"gpu_type": "t4", "gpu_count": 8, "count": 5000}]}, "/nodes"),
    ],
)
def test_a_cluster_is_no_larger_than_a_page_can_show(
    client: TestClient, body: dict[str, Any], pointer: str
) -> None:
    answer = client.post("/api/v1/clusters", json={"name": "huge", **body})
    (error,) = answer.json()["errors"]
    assert (answer.status_code, error["pointer"]) == (422, pointer)
    assert "at most" in error["remedy"].lower() or "at or below" in error["remedy"]
