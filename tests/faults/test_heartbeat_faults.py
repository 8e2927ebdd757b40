"""A real worker's sign of life ends with the worker, and with its broker."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlmodel import select
from worker_processes import Worker, wait_until

from backend.app import create_app
from backend.database import Database
from backend.models import WorkerHeartbeat
from backend.settings import Settings


def last_sign(database: Database) -> datetime | None:
    with database.session_scope(writes=False) as session:
        found = session.exec(select(WorkerHeartbeat)).all()
    return max((row.at for row in found), default=None)


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    opened = Database(database_url)
    yield opened
    opened.dispose()


def test_a_worker_shows_life_by_name_and_queues_until_it_is_killed(
    worker: Worker, database: Database
) -> None:
    worker.start()
    wait_until(lambda: last_sign(database) is not None, "a sign of life", log=worker.log)
    first = last_sign(database)
    wait_until(lambda: last_sign(database) != first, "another one", log=worker.log)
    with database.session_scope(writes=False) as session:
        (row,) = session.exec(select(WorkerHeartbeat)).all()
    assert row.name.startswith("worker@")
    assert row.queues == ["rounds", "simulations"]
    worker.kill()
    silent = last_sign(database)
    with pytest.raises(AssertionError):
        wait_until(lambda: last_sign(database) != silent, "a sign of the dead", seconds=7.0)


@pytest.mark.long
def test_the_service_is_ready_while_its_worker_lives(
    worker: Worker, database_url: str, tmp_path: Path
) -> None:
    settings = Settings(
        _env_file=None,
        data_dir=tmp_path / "data",
        database_url=database_url,
        broker_url=worker.environment["MAAT_BROKER_URL"],
        worker_stale_seconds=8.0,
    )

    def misses(client: TestClient) -> set[str]:
        return {error["field"] for error in client.get("/readyz").json().get("errors", [])}

    with TestClient(create_app(settings)) as client:
        assert misses(client) == {"worker"}
        worker.start()
        wait_until(lambda: misses(client) == set(), "the service is ready", log=worker.log)
        worker.kill()
        wait_until(lambda: misses(client) == {"worker"}, "the worker is missed")
