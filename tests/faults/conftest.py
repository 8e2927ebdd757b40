"""Fixtures of tests that kill processes: migrated databases, real brokers, a live cluster."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "backend"))  # their databases
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "worker"))  # their live cluster

from database_fixtures import *  # noqa: F403
from redis_server import NoRedis, redis_server
from worker_processes import Worker


@pytest.fixture
def redis_url() -> Iterator[str]:
    try:
        with redis_server() as url:
            yield url
    except NoRedis as reason:
        pytest.skip(str(reason))


@pytest.fixture(
    params=[
        "embedded",
        pytest.param("deployed", marks=[pytest.mark.needs_postgres, pytest.mark.needs_redis]),
    ]
)
def kind(request: pytest.FixtureRequest) -> str:
    """Embedded: SQLite and the broker of files. Deployed: PostgreSQL and Redis."""
    return str(request.param)


@pytest.fixture
def database_url(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if kind == "deployed":
        make = request.getfixturevalue("postgres_database_maker")
        url: str = make()
    else:
        url = f"sqlite:///{tmp_path / 'maat.db'}"
    migrate(url)
    return url


def migrate(url: str) -> None:
    from backend.database import Database
    from backend.migrations import upgrade

    database = Database(url)
    upgrade(database)
    database.dispose()


@pytest.fixture
def worker(
    kind: str, database_url: str, request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Worker]:
    broker = request.getfixturevalue("redis_url") if kind == "deployed" else ""
    started = Worker.on(database_url, tmp_path, broker_url=broker)
    yield started
    started.stop()
