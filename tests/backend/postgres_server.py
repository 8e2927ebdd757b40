"""A PostgreSQL server for tests.

It is the running one, else a private one if the Debian package is installed, else tests skip.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from benchmarks.service.real_server import free_port

DEFAULT_URL = "postgresql://postgres@127.0.0.1:5432"
START_SECONDS = 120.0


class NoPostgres(Exception):
    """There is none, and none can be started."""


@contextmanager
def postgres_server() -> Iterator[str]:
    """Return the URL, without a database's name, of a server on which databases may be made.

    Raises NoPostgres.
    """
    url = shared_url()
    if _answers(url):
        yield url
        return
    with _private_server() as private_url:
        yield private_url


def shared_url() -> str:
    """Return the URL of a server that stays, if one answers there."""
    return os.environ.get("MAAT_TEST_POSTGRES", DEFAULT_URL)


def _answers(url: str) -> bool:
    try:
        psycopg.connect(f"{url}/postgres", connect_timeout=10).close()
    except psycopg.Error:
        return False
    return True


@contextmanager
def _private_server() -> Iterator[str]:
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not folders:
        raise NoPostgres(
            "no PostgreSQL answers and none is installed: install the Debian package postgresql"
        )
    programs, data = folders[-1], Path(tempfile.mkdtemp(prefix="maat-postgres-"))
    # The server refuses to run as root: it runs as the user that the package made.
    user = "postgres" if os.geteuid() == 0 else None
    if user is not None:
        os.chown(data, pwd.getpwnam(user).pw_uid, -1)
    port = free_port()
    options = [
        "-c",
        "listen_addresses=127.0.0.1",
        "-c",
        "fsync=off",
        "-k",
        str(data),
        "-p",
        str(port),
    ]
    subprocess.run(
        [programs / "initdb", "-A", "trust", "-U", "postgres", "-D", data / "db"],
        check=True,
        capture_output=True,
        user=user,
        cwd=data,
    )
    server = subprocess.Popen(
        [programs / "postgres", "-D", data / "db", *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        user=user,
        cwd=data,
    )
    url = f"postgresql://postgres@127.0.0.1:{port}"
    try:
        _await(url)
        yield url
    finally:
        server.send_signal(signal.SIGQUIT)  # at once: nothing of it is kept
        server.wait()
        shutil.rmtree(data, ignore_errors=True)


def _await(url: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not _answers(url):
        if time.monotonic() > deadline:
            raise NoPostgres("the installed PostgreSQL does not start")
        time.sleep(0.1)
