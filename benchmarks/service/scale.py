"""The service at scale, as ratios: a list and a submission beside a bare route with the same SQL.

200 tenants, 10,000 active jobs, and histories of 10,000 and 100,000 jobs. Maat and the bare route
are asked in turns, on the same database, so that what else the machine does counts for both.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psycopg
from fastapi.testclient import TestClient
from sqlmodel import select

from backend.accounts.models import User
from backend.accounts.tokens import create_token
from backend.app import create_app
from backend.bootstrap_data import ensure_defaults
from backend.database import Database
from backend.settings import Settings
from benchmarks.service.bare import Recorded, bare_service, recording
from benchmarks.service.http_client import Connection, request_bytes
from benchmarks.service.real_server import serving
from benchmarks.service.served import POSTGRESQL, SQLITE, cpu_seconds_of, empty_database
from benchmarks.table import Cell, Figures

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests" / "backend"))

import history

HISTORIES = (10_000, 100_000)
ACTIVE, TENANTS = 10_000, 200
ASKED = 150
WARM = 30
LIST, SUBMIT, METRICS = "list of 50 jobs", "submit a job", "/metrics"
BODY = json.dumps({"name": "train", "model": "bert", "cluster_id": "demo"}).encode()
COLUMNS = {
    "database": "database",
    "history": "ended jobs",
    "route": "route",
    "statements": "statements",
    "maat": "Maat, ms",
    "bare": "bare route, ms",
    "ratio": "ratio",
    "cpu": "Maat, CPU ms",
    "bare_cpu": "bare, CPU ms",
    "cpu_ratio": "CPU ratio",
    "flat": "CPU x the shorter history",
}
NOTES = [
    f"{ACTIVE:,} active jobs and {TENANTS} tenants; one client on a keep-alive connection asks "
    f"Maat and the bare route in turns, {ASKED} times each; medians. The administrator asks, with "
    "a token.",
    "The bare route is as FastAPI's documentation writes one, with a session as a dependency. It "
    "sends the statements that Maat's route sends, its identity's included, as text in one "
    "transaction, and answers with their rows.",
    "CPU: of the service's process, without the database's.",
]


@dataclass(frozen=True)
class _Asked:
    """A request to Maat, and the same to the bare application (none of /metrics)."""

    route: str
    request: bytes
    bare: bytes | None
    statements: int


def measure() -> list[Figures]:
    rows: list[dict[str, Cell]] = []
    notes = list(NOTES)
    for database in (SQLITE, POSTGRESQL):
        try:
            rows += _with_flatness([row for size in HISTORIES for row in _measured(database, size)])
        except psycopg.OperationalError:
            notes.append(f"No {database} answered: not measured.")
    return [Figures("scale", "The service at scale", COLUMNS, rows, notes)]


def _measured(kind: str, ended: int) -> list[dict[str, Cell]]:
    with _filled(kind, ended) as (url, folder, token):
        listing, submitting = _recorded(url, folder, token)
        asked = [
            _Asked(
                LIST,
                request_bytes("GET", "/api/v1/jobs?limit=50", token=token),
                request_bytes("GET", "/jobs?limit=50"),
                len(listing.statements),
            ),
            _Asked(
                SUBMIT,
                request_bytes("POST", "/api/v1/jobs", token=token, body=BODY),
                request_bytes("POST", "/jobs", body=BODY),
                len(submitting.statements),
            ),
            _Asked(METRICS, request_bytes("GET", "/metrics", token=token), None, 0),
        ]
        with (
            serving(
                "frontend.app:create_app",
                url,
                folder,
                options=("--log-level", "error", "--no-access-log", "--http", "httptools"),
                log=folder / "api.log",
                metrics_seconds=0,
                reads_per_minute=0,
                changes_per_minute=0,
            ) as maat,
            bare_service(_with_driver(url), listing, submitting) as (bare_port, bare_pid),
        ):
            maat_port = int(maat.url.rpartition(":")[2])
            ports = (maat_port, bare_port)
            pids = (maat.process.pid, bare_pid)
            return [
                {"database": kind, "history": ended, **asyncio.run(_row(one, ports, pids))}
                for one in asked
            ]


async def _row(one: _Asked, ports: tuple[int, int], pids: tuple[int, int]) -> dict[str, Cell]:
    maat, bare = Connection(ports[0]), Connection(ports[1])
    for _ in range(WARM):
        await _milliseconds(maat, one.request)
        if one.bare is not None:
            await _milliseconds(bare, one.bare)
    began = [cpu_seconds_of(pid) for pid in pids]
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(ASKED):
        times[0].append(await _milliseconds(maat, one.request))
        if one.bare is not None:
            times[1].append(await _milliseconds(bare, one.bare))
    cpu = [
        1000 * (cpu_seconds_of(pid) - before) / ASKED
        for pid, before in zip(pids, began, strict=True)
    ]
    maat.close()
    bare.close()
    row: dict[str, Cell] = {"route": one.route, "maat": median(times[0]), "cpu": cpu[0]}
    if one.bare is None:
        return row
    return row | {
        "statements": one.statements,
        "bare": median(times[1]),
        "ratio": median(times[0]) / median(times[1]),
        "bare_cpu": cpu[1],
        "cpu_ratio": cpu[0] / cpu[1] if cpu[1] else None,
    }


async def _milliseconds(connection: Connection, request: bytes) -> float:
    reply = await connection.ask(request)
    if reply.status >= 300:
        raise RuntimeError(f"answered {reply.status}: {reply.body[:300]!r}")
    return 1000 * reply.seconds


@contextmanager
def _filled(kind: str, ended: int) -> Iterator[tuple[str, Path, str]]:
    """Yield the URL of a database at this scale, its data folder, and the administrator's token."""
    with (
        tempfile.TemporaryDirectory(prefix="maat-bench-") as folder,
        empty_database(kind, Path(folder)) as url,
    ):
        settings = Settings(_env_file=None, data_dir=Path(folder), database_url=url, demo=True)  # type: ignore[call-arg]
        database = Database.of(settings)
        ensure_defaults(database, settings)
        with database.session_scope() as session:
            token = create_token(session, session.exec(select(User)).one(), name="benchmark")
            history.fill(session, ended + ACTIVE, under_way=ACTIVE, other_tenants=TENANTS - 1)
        with database.session_scope() as session:
            history.settle(session)
        database.dispose()
        yield url, Path(folder), token


def _recorded(url: str, folder: Path, token: str) -> tuple[Recorded, Recorded]:
    """Record what a list and a submission send, of an application in this process."""
    settings = Settings(
        _env_file=None,
        data_dir=folder,
        database_url=url,
        implicit_admin=True,  # type: ignore[call-arg]
    )
    app = create_app(settings)
    client = TestClient(app, base_url="http://127.0.0.1:8000", client=("127.0.0.1", 50000))
    with client:
        client.headers["Authorization"] = f"Bearer {token}"
        headers = {"Content-Type": "application/json"}
        client.get("/api/v1/jobs?limit=50").raise_for_status()
        with recording(app.state.database) as listing:
            client.get("/api/v1/jobs?limit=50").raise_for_status()
        with recording(app.state.database) as submitting:
            answer = client.post("/api/v1/jobs", content=BODY, headers=headers)
            answer.raise_for_status()
    return listing, submitting


def _with_driver(url: str) -> str:
    return Settings(_env_file=None, database_url=url).sqlalchemy_url  # type: ignore[call-arg]


def _with_flatness(rows: list[dict[str, Cell]]) -> list[dict[str, Cell]]:
    """Add to the rows of the longer history how much more CPU they take than of the shorter."""
    shorter = {row["route"]: row["cpu"] for row in rows if row["history"] == HISTORIES[0]}
    for row in rows:
        before, now = shorter[row["route"]], row["cpu"]
        if row["history"] != HISTORIES[0] and isinstance(before, float) and isinstance(now, float):
            row["flat"] = now / before
    return rows
