"""/healthz, /readyz and /health mean what they say: each thing is taken away for real."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlmodel import select

from backend.app import provide
from backend.clocktime import utc_now
from backend.database import Database
from backend.models import Cluster, WorkerHeartbeat
from backend.queue import celery_queue
from backend.settings import Settings
from benchmarks.service.real_server import free_port

HEALTH = "/api/v1/health"


@pytest.fixture
def worker(database: Database) -> WorkerHeartbeat:
    """A worker that has shown life just now."""
    with database.session_scope() as session:
        row = WorkerHeartbeat(name="rounds@a", queues=["rounds"], version="1")
        session.add(row)
    return row


def test_a_service_that_was_ended_and_begun_again_looks_again(
    app: FastAPI, worker: WorkerHeartbeat
) -> None:
    for _ in range(2):
        with TestClient(app) as client:
            assert client.get(HEALTH).json()["database"] == "ok"
            assert not {"database", "worker"} & missing(client).keys()
    last = TestClient(app)  # a request that comes while the service ends
    assert last.get(HEALTH).json()["database"] == "ok"


def missing(client: TestClient) -> dict[str, dict[str, Any]]:
    """What /readyz misses, by name; empty if it is ready."""
    answer = client.get("/readyz")
    if answer.status_code == 200:
        assert answer.json()["status"] == "ready"
        return {}
    problem = answer.json()
    assert (answer.status_code, problem["type"]) == (503, "/problems/not-ready")
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert all(error["message"] and error["remedy"] for error in problem["errors"])
    return {error["field"]: error for error in problem["errors"]}


def test_all_is_there(client: TestClient, worker: WorkerHeartbeat) -> None:
    assert missing(client) == {}
    assert client.get("/healthz").json()["status"] == "alive"
    assert client.get(HEALTH).json()["disk"] == "ok"


def test_everybody_may_ask_and_learns_nothing_of_what_is_there(
    app: FastAPI, client: TestClient, worker: WorkerHeartbeat
) -> None:
    stranger = TestClient(app, base_url="http://maat.example", client=("10.0.0.9", 1))
    assert [stranger.get(path).status_code for path in ("/healthz", "/readyz")] == [200, 200]
    assert "demo" not in stranger.get("/readyz").text


def test_without_a_worker_it_is_not_ready(client: TestClient, database: Database) -> None:
    assert set(missing(client)) == {"worker"}
    with database.session_scope() as session:
        session.add(WorkerHeartbeat(name="simulations@a", queues=["simulations"], version="1"))
    assert "has ever shown life" in missing(client)["worker"]["message"]


def test_a_worker_that_has_fallen_silent_is_missed(
    client: TestClient, database: Database, worker: WorkerHeartbeat
) -> None:
    with database.session_scope() as session:
        session.get_one(WorkerHeartbeat, worker.name).at = utc_now() - timedelta(seconds=45)
    assert "for 45 s" in missing(client)["worker"]["message"]


def test_overdue_rounds_are_missed_until_the_cluster_is_paused(
    client: TestClient, database: Database, worker: WorkerHeartbeat
) -> None:
    with database.session_scope() as session:
        session.exec(select(Cluster)).one().anchor_wall = utc_now() - timedelta(minutes=10)
    assert set(missing(client)) == {"rounds"}
    assert client.get(HEALTH).json()["status"] == "degraded"
    client.post("/api/v1/clusters/demo/actions/pause")
    assert missing(client) == {}


def test_another_schema_is_told_with_what_to_do(
    client: TestClient, database: Database, worker: WorkerHeartbeat
) -> None:
    with database.session_scope(writes=False) as session:
        head = session.execute(sa.text("SELECT version_num FROM alembic_version")).scalar_one()
    for revision, remedy in (("0018", "make migrate"), ("9999", "newer version")):
        _set_revision(database, revision)
        error = missing(client)["schema"]
        assert remedy in error["remedy"]
        assert revision in error["message"]
    _set_revision(database, head)
    assert missing(client) == {}


def _set_revision(database: Database, revision: str) -> None:
    with database.session_scope() as session:
        session.execute(sa.text(f"UPDATE alembic_version SET version_num = '{revision}'"))


def test_a_broker_that_is_away_is_told(
    app: FastAPI, client: TestClient, settings: Settings, worker: WorkerHeartbeat
) -> None:
    away = settings.model_copy(update={"broker_url": f"redis://127.0.0.1:{free_port()}/0"})
    provide(app, settings, queue=celery_queue(away))
    assert set(missing(client)) == {"broker"}


def test_a_database_that_is_away_is_told_and_the_process_is_alive(
    application: FastAPI, tmp_path: Path
) -> None:
    url = f"postgresql://nobody@127.0.0.1:{free_port()}/none"
    provide(application, Settings(_env_file=None, data_dir=tmp_path, database_url=url))
    with TestClient(application, base_url="http://127.0.0.1") as client:
        assert set(missing(client)) == {"database"}
        assert client.get("/healthz").status_code == 200


@contextmanager
def no_room() -> Iterator[None]:
    """The system refuses every file of this process that would grow beyond a KiB."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_told_until_there_is_room(
    client: TestClient, worker: WorkerHeartbeat
) -> None:
    assert missing(client) == {}
    with no_room():
        error = missing(client)["disk"]
        found = client.get(HEALTH).json()
    assert "Nothing can be written to the data folder (File too large)." in error["message"]
    assert "Make room" in error["remedy"]
    assert (found["status"], found["disk"]) == ("degraded", "full")
    assert missing(client) == {}
    assert client.get(HEALTH).json()["status"] == "ok"


def test_too_little_room_and_a_folder_that_cannot_be_written_are_a_full_disk(
    app: FastAPI,
    client: TestClient,
    settings: Settings,
    worker: WorkerHeartbeat,
    tmp_path: Path,
) -> None:
    (tmp_path / "file").write_text("no folder")
    for given in ({"least_free_bytes": 2**60}, {"data_dir": tmp_path / "file"}):
        url = {"database_url": settings.sqlalchemy_url}
        provide(app, settings.model_copy(update=given | url), queue=app.state.queue)
        assert set(missing(client)) == {"disk"}
        assert client.get(HEALTH).json()["status"] == "degraded"
