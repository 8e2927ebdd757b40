"""The whole service in its own process, on an empty database of either kind.

It is measured from outside; this module measures nothing.
"""

from __future__ import annotations

import json
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import psycopg
from sqlmodel import select

from backend.accounts.models import User
from backend.accounts.tokens import create_token
from backend.bootstrap_data import ensure_defaults
from backend.database import Database
from backend.settings import Settings
from benchmarks.service.real_server import serving

SQLITE, POSTGRESQL = "SQLite", "PostgreSQL"
_POSTGRES = os.environ.get("MAAT_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432")


@dataclass(frozen=True)
class Served:
    """The address of the service, its process, its administrator's token, and where its data is."""

    port: int
    pid: int
    token: str
    database_url: str
    data_dir: Path

    def cpu_seconds(self) -> float:
        return cpu_seconds_of(self.pid)

    def memory_mib(self, which: str = "VmRSS") -> float:
        """Return its memory. `which`: VmRSS for now, VmHWM for the maximum."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(f"{which}:")) / 1024


def cpu_seconds_of(pid: int) -> float:
    """Return the CPU seconds of a process so far, of all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def served(kind: str, *, jobs: int = 0, **settings: object) -> Iterator[Served]:
    """Run the service with its demo cluster and this many jobs, without a worker.

    Raises psycopg.OperationalError if PostgreSQL does not answer.
    """
    with (
        tempfile.TemporaryDirectory(prefix="maat-bench-") as folder,
        empty_database(kind, Path(folder)) as url,
    ):
        token = _filled(url, Path(folder))
        with serving(
            "frontend.app:create_app",
            url,
            Path(folder),
            options=("--log-level", "error"),
            **settings,
        ) as server:
            port = httpx.URL(server.url).port or 0
            found = Served(port, server.process.pid, token, url, Path(folder))
            for _ in range(0, jobs, 500):
                _submit(found, min(jobs, 500))
            yield found


@contextmanager
def empty_database(kind: str, folder: Path) -> Iterator[str]:
    """Yield the URL of a new database, SQLite's in the folder.

    Raises psycopg.OperationalError if PostgreSQL does not answer.
    """
    if kind == SQLITE:
        yield f"sqlite:///{folder / 'maat.db'}"
        return
    name = f"maat_bench_{secrets.token_hex(6)}"
    with psycopg.connect(f"{_POSTGRES}/postgres", autocommit=True, connect_timeout=5) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')  # type: ignore[arg-type]
        try:
            yield f"{_POSTGRES}/{name}"
        finally:
            connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')  # type: ignore[arg-type]


def _filled(url: str, folder: Path) -> str:
    """Migrate, and make the demo cluster and a token of the administrator."""
    settings = Settings(_env_file=None, data_dir=folder, database_url=url, demo=True)
    database = Database.of(settings)
    ensure_defaults(database, settings)
    with database.session_scope() as session:
        token = create_token(session, session.exec(select(User)).one(), name="benchmark")
    database.dispose()
    return token


def _submit(service: Served, count: int) -> None:
    body = json.dumps(
        {"jobs": [{"name": f"job-{index}", "model": "bert"} for index in range(count)]}
    ).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {service.token}"}
    httpx.post(
        f"http://127.0.0.1:{service.port}/api/v1/jobs:batch",
        content=body,
        headers=headers,
        timeout=60.0,
        trust_env=False,
    ).raise_for_status()
