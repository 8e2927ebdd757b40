"""uvicorn in a process of its own: for what a test client in the same process cannot show."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

PATIENCE_SECONDS = 120.0
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Server:
    url: str
    process: subprocess.Popen[bytes]


@contextmanager
def serving(
    application: str, database_url: str, data_dir: Path, **settings: object
) -> Iterator[Server]:
    """`application`: a factory, such as `backend.app:create_app`. `settings`: by their names in backend/settings.py."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    given = {f"MAAT_{name.upper()}": str(value) for name, value in settings.items()}
    environment = (
        os.environ | {"MAAT_DATA_DIR": str(data_dir), "MAAT_DATABASE_URL": database_url} | given
    )
    arguments = [
        sys.executable,
        "-m",
        "uvicorn",
        "--factory",
        application,
        "--port",
        str(port),
        "--log-level",
        "warning",
    ]
    process = subprocess.Popen(arguments, env=environment, cwd=ROOT)
    url = f"http://127.0.0.1:{port}"
    try:
        await_answer(f"{url}/api/v1/health")
        yield Server(url, process)
    finally:
        process.kill()
        process.wait()


def await_answer(url: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            httpx.get(url, timeout=PATIENCE_SECONDS, trust_env=False).raise_for_status()
            return
        except httpx.HTTPError:
            assert time.monotonic() < deadline, "the server does not answer"
            time.sleep(0.1)
