"""Tests of more clients than threads and connections, on a real server.

Every client is answered, without a 500, and /health answers all the time.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa

from backend.bootstrap_data import ensure_defaults
from backend.database import Database
from backend.settings import Settings
from benchmarks.service.real_server import PATIENCE_SECONDS, Server, serving

CLIENTS = 60
THREADS = 4
JOBS, HEALTH, CALL = "/api/v1/jobs", "/api/v1/health", "/_dash-update-component"

Ask = Callable[[httpx.Client], httpx.Response]


@pytest.fixture
def start(database_url: str, database: Database, tmp_path: Path) -> Callable[..., object]:
    ensure_defaults(database, Settings(_env_file=None, data_dir=tmp_path, demo=True))

    def begin(**settings: object) -> object:
        return serving(
            "frontend.app:create_app", database_url, tmp_path, request_threads=THREADS, **settings
        )

    return begin


def list_jobs(client: httpx.Client) -> httpx.Response:
    return client.get(JOBS)


def submit(client: httpx.Client) -> httpx.Response:
    return client.post(JOBS, json={"name": "train", "model": "bert"})


def open_page(client: httpx.Client) -> httpx.Response:
    return client.get("/jobs")


def callback_of(server: Server) -> Ask:
    """The first call that a page makes by itself."""
    with httpx.Client(base_url=server.url, timeout=PATIENCE_SECONDS, trust_env=False) as own:
        found = next(
            call
            for call in own.get("/_dash-dependencies").json()
            if not call["clientside_function"] and not call["prevent_initial_call"]
        )
    outputs = [_value(part) for part in found["output"].strip(".").split("...")]
    body = {
        "output": found["output"],
        "outputs": outputs if found["output"].startswith("..") else outputs[0],
        "inputs": found["inputs"],
        "state": found["state"],
        "changedPropIds": [],
    }
    return lambda client: client.post(CALL, json=body)


def _value(part: str) -> dict[str, str]:
    name, _, prop = part.rpartition(".")
    return {"id": name, "property": prop.split("@")[0]}


def all_at_once(server: Server, asks: list[Ask]) -> list[httpx.Response]:
    """Start all clients together; each sends its requests in turn on its own connection."""
    together = threading.Barrier(CLIENTS)

    def client(index: int) -> list[httpx.Response]:
        with httpx.Client(base_url=server.url, timeout=PATIENCE_SECONDS, trust_env=False) as own:
            together.wait()
            return [ask(own) for ask in asks[index % len(asks) :] + asks[: index % len(asks)]]

    with ThreadPoolExecutor(CLIENTS) as pool:
        return [answer for answers in pool.map(client, range(CLIENTS)) for answer in answers]


def test_more_clients_than_threads_and_connections_are_all_answered(
    start: Callable[..., object],
) -> None:
    with start(request_wait_seconds=PATIENCE_SECONDS) as server:  # type: ignore[attr-defined]
        answers = all_at_once(server, [list_jobs, submit, open_page, callback_of(server)])
    assert (
        Counter(
            answer.status_code for answer in answers if answer.status_code not in (200, 201, 204)
        )
        == {}
    )


@pytest.mark.long
def test_who_finds_no_place_is_told_when_to_come_again_and_health_answers_meanwhile(
    start: Callable[..., object], database_url: str, database: Database
) -> None:
    ask = submit if database.is_sqlite else list_jobs
    with (
        start(request_wait_seconds=0.2) as server,  # type: ignore[attr-defined]
        ThreadPoolExecutor(CLIENTS) as pool,
        httpx.Client(base_url=server.url, timeout=PATIENCE_SECONDS, trust_env=False) as own,
    ):
        with locked(database_url, "jobs"):
            waiting = [pool.submit(_once, server, ask) for _ in range(CLIENTS)]
            refused = _first(waiting, CLIENTS - THREADS)
            health = own.get(HEALTH)
            page = own.get("/jobs")
        served = [answer.result() for answer in waiting if answer.result() not in refused]
    assert {answer.status_code for answer in refused} == {503}
    assert all(
        "Retry-After" in answer.headers and answer.json()["type"] == "/problems/unavailable"
        for answer in refused
    )
    assert (health.status_code, health.json()["database"], page.status_code) == (200, "ok", 200)
    assert {answer.status_code for answer in served} <= {200, 201, 503}
    assert any(answer.is_success for answer in served)


# Of PostgreSQL alone: nobody who reads SQLite waits.
@pytest.mark.parametrize(
    "database_url", [pytest.param("postgresql", marks=pytest.mark.needs_postgres)], indirect=True
)
def test_health_says_so_where_the_database_keeps_it_waiting(
    start: Callable[..., object], database_url: str
) -> None:
    with (
        start() as server,
        httpx.Client(base_url=server.url, timeout=PATIENCE_SECONDS, trust_env=False) as own,
    ):  # type: ignore[attr-defined]
        with locked(database_url, "clusters"):
            slow = own.get(HEALTH).json()
        again = own.get(HEALTH).json()
    assert (slow["status"], slow["database"]) == ("degraded", "slow")
    assert slow["checked_seconds_ago"] > 0
    assert (again["database"], again["checked_seconds_ago"]) == ("ok", 0)


def _once(server: Server, ask: Ask) -> httpx.Response:
    with httpx.Client(base_url=server.url, timeout=PATIENCE_SECONDS, trust_env=False) as own:
        return ask(own)


def _first(futures: list[Future[httpx.Response]], count: int) -> list[httpx.Response]:
    """What comes first, `count` of them."""
    found: list[httpx.Response] = []
    for future in as_completed(futures, timeout=PATIENCE_SECONDS):
        found.append(future.result())
        if len(found) == count:
            break
    return found


@contextmanager
def locked(database_url: str, table: str) -> Iterator[None]:
    """Nobody reads this table (PostgreSQL), or the place of the one writer is taken (SQLite)."""
    engine = sa.create_engine(database_url)
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        else:
            connection.exec_driver_sql(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        yield
        connection.rollback()
    engine.dispose()
