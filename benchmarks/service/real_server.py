"""The service on uvicorn in its own process, observed from outside.

Tests and benchmarks start it without a worker; tests/faults has those.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

PATIENCE_SECONDS = 120.0  # only what fails waits as long
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Server:
    url: str
    process: subprocess.Popen[bytes]


@contextmanager
def serving(
    application: str,
    database_url: str,
    data_dir: Path,
    *,
    options: Sequence[str] = ("--log-level", "warning"),
    log: Path | None = None,
    modules: Path = ROOT,
    **settings: object,
) -> Iterator[Server]:
    """Start a server that answers, and kill it afterwards.

    `application`: a factory, such as `backend.app:create_app`. `options`: of uvicorn. `log`: a file
    for all its output, which otherwise goes to our own. `modules`: a folder from which it may
    import, besides ours. `settings`: by their names in backend/settings.py. Raises RuntimeError if
    it ends, or does not answer within PATIENCE_SECONDS.
    """
    port = free_port()
    given = {f"MAAT_{name.upper()}": str(value) for name, value in settings.items()}
    places = {
        "MAAT_DATA_DIR": str(data_dir),
        "MAAT_DATABASE_URL": database_url,
        "PYTHONPATH": os.pathsep.join([str(modules), str(ROOT)]),
    }
    arguments = [
        sys.executable,
        "-m",
        "uvicorn",
        "--factory",
        application,
        "--port",
        str(port),
        *options,
    ]
    output = None if log is None else log.open("wb")
    process = subprocess.Popen(
        arguments,
        env=os.environ | places | given,
        cwd=ROOT,
        stdout=output,
        stderr=output and subprocess.STDOUT,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        await_answer(f"{url}/api/v1/health", process)
        yield Server(url, process)
    finally:
        process.kill()
        process.wait()
        if output is not None:
            output.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def await_answer(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            httpx.get(url, timeout=PATIENCE_SECONDS, trust_env=False).raise_for_status()
            return
        except httpx.HTTPError as error:
            if process.poll() is not None or time.monotonic() > deadline:
                ended = (
                    "" if process.returncode is None else f"; it ended with {process.returncode}"
                )
                raise RuntimeError(f"no answer from {url}{ended}") from error
            time.sleep(0.1)
