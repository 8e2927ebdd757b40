"""A Redis server for tests.

It is a private one if the Debian package is installed, so that two runs never share it; else the
one of MAAT_TEST_REDIS.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import redis

from benchmarks.service.real_server import free_port

START_SECONDS = 60.0
TRIES = 5  # a port that was free may be taken by the time the server asks for it


class NoRedis(Exception):
    """There is none, and none can be started."""


@contextmanager
def redis_server() -> Iterator[str]:
    """The URL of an empty database. Raises NoRedis."""
    named, program = os.environ.get("MAAT_TEST_REDIS"), shutil.which("redis-server")
    if named is not None:
        redis.Redis.from_url(named).flushdb()
        yield named
    elif program is not None:
        server, url = _started(program)
        try:
            yield url
        finally:
            server.terminate()
            server.wait()
    else:
        raise NoRedis(
            "none is installed and MAAT_TEST_REDIS names none: "
            "install the Debian package redis-server"
        )


def _started(program: str) -> tuple[subprocess.Popen[bytes], str]:
    for _ in range(TRIES):
        port = free_port()
        command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        url = f"redis://127.0.0.1:{port}/0"
        deadline = time.monotonic() + START_SECONDS
        while server.poll() is None and time.monotonic() < deadline:
            if _answers(url):
                return server, url
            time.sleep(0.05)
        server.kill()
        server.wait()
    raise NoRedis("the installed Redis does not start")


def _answers(url: str) -> bool:
    try:
        return bool(redis.Redis.from_url(url, socket_connect_timeout=1).ping())
    except redis.RedisError:
        return False
