"""All that a job's page shows is of one moment, though a round may be committed while it reads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from sqlmodel import col, select

from backend.app import create_app
from backend.bootstrap_data import ensure_defaults
from backend.clocktime import utc_now
from backend.database import Database
from backend.models import Cluster
from backend.settings import Settings
from frontend.pages.job.reading import MOST_TRIES, JobParts, read_parts
from maat.client import AsyncClient
from worker.live.step import step_cluster

HERE = ("127.0.0.1", 50000)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[tuple[FastAPI, Database]]:
    settings = Settings(
        _env_file=None,
        data_dir=tmp_path,
        database_url="",
        broker_url="",
        implicit_admin=True,
        demo=True,
    )
    database = Database.of(settings)
    ensure_defaults(database, settings)
    yield create_app(settings), database
    database.dispose()


def play(database: Database, seconds: float) -> None:
    """Commit a round of the demo's cluster."""
    with database.session_scope() as session:
        cluster = session.exec(select(Cluster).order_by(col(Cluster.id))).one()
        cluster.speed, cluster.anchor_seconds, cluster.anchor_wall = 1e-9, seconds, utc_now()
        cluster_id = cluster.id
    step_cluster(database, cluster_id)


async def read_while(app: FastAPI, happens: Callable[[int], None]) -> tuple[JobParts, int]:
    """Submit a job and read it; before each of its explanations something happens."""
    explained = 0

    async def between(scope: Any, receive: Any, send: Any) -> None:
        nonlocal explained
        if scope["path"].endswith("/explanation"):
            explained += 1
            await asyncio.to_thread(happens, explained)
        await app(scope, receive, send)

    transport = httpx.ASGITransport(app=between, client=HERE)
    async with (
        app.router.lifespan_context(app),
        AsyncClient("http://127.0.0.1:8000", transport=transport) as maat,
    ):
        created = await maat.submit_job({"name": "train", "model": "bert"})
        return await read_parts(maat, created["id"]), explained


def test_a_round_in_between_is_read_whole(service: tuple[FastAPI, Database]) -> None:
    app, database = service

    def two_rounds_at_once(times: int) -> None:
        if times == 1:
            play(database, 60.0)
            play(database, 120.0)

    parts, times = asyncio.run(read_while(app, two_rounds_at_once))

    assert times == 2
    job, why = parts.job(), parts.explanation()
    assert job["reason"]["code"] == (why["primary"] or {})["code"]
    assert job["allocation"] is not None
    (span,) = [one for one in parts.spans()["items"] if one["to_at"] is None]
    assert (span["gpu_type"], span["gpus"]) == (
        job["allocation"]["gpu_type"],
        job["allocation"]["gpus"],
    )
    states = [event["state"] for event in parts.events()["items"] if event["state"]]
    assert states[-1] == job["state"]


def test_a_page_comes_though_rounds_never_rest(service: tuple[FastAPI, Database]) -> None:
    app, database = service
    parts, times = asyncio.run(read_while(app, lambda times: play(database, 60.0 * times)))
    assert times == MOST_TRIES
    assert parts.job()["name"] == "train"
